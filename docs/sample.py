"""Sample sessions as the documentation site shows them: python -m docs.sample FOLDER"""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

from cosmosservice import CosmosAccount, CosmosSessionService
from cosmosservice.explore.catalogue import Catalogue, Search
from cosmosservice.explore.dependants import Dependants
from cosmosservice.explore.meter import Meter
from cosmosservice.explore.rendering import Static
from cosmosservice.explore.static_site import static_site
from tests.explore import demo


async def sample(folder: Path) -> None:
    meter = Meter()
    async with CosmosAccount.embedded(on_request_charge=meter.charged) as account:
        service, dependants = CosmosSessionService(account=account), await Dependants.on(account)
        await demo.fill(service, dependants)
        found = await Catalogue(service).find(Search())
        made = await static_site(service, meter, dependants, Static(found.rows))
    made.write(folder)


if __name__ == "__main__":
    shutil.rmtree(sys.argv[1], ignore_errors=True)
    asyncio.run(sample(Path(sys.argv[1])))
