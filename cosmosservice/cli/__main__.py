from cosmosservice.cli import main

main()
