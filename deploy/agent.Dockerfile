# The example agents, with cosmosservice from this checkout. Used by `azd up`; the context is the repository.
FROM python:3.13-slim AS build
COPY . /source
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels /source

FROM python:3.13-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/cosmosservice-*.whl)[blobs,entra]"
WORKDIR /app
COPY examples/agents agents
RUN useradd --create-home agent
USER agent
EXPOSE 8000
CMD ["sh", "-c", "exec adk api_server --host 0.0.0.0 --port 8000 --session_service_uri=$SERVICES_URI --memory_service_uri=$SERVICES_URI --artifact_service_uri=$SERVICES_URI agents"]
