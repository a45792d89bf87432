// What `azd up` deploys: a resource group with the example agent on Container Apps, its identity, Cosmos DB,
// Blob Storage for large artifacts, and a Log Analytics workspace. docs/azure.md says what it costs.

targetScope = 'subscription'

@description('Name of the environment of azd. It is part of the names of everything.')
@minLength(1)
@maxLength(40)
param environmentName string

@description('Region of everything.')
param location string

@description('Object id of the person who deploys, who may then read and write too. Empty: nobody but the agent.')
param principalId string = ''

@description('Image of the agent. azd sets it once it has built one.')
param agentImage string = ''

@description('Dimensions of the embedder of memories. 0: memories are found by words only.')
param vectorDimensions int = 0

var tags = { 'azd-env-name': environmentName }

resource group 'Microsoft.Resources/resourceGroups@2024-03-01' = {
  name: 'rg-${environmentName}'
  location: location
  tags: tags
}

module base 'agent-base.bicep' = {
  scope: group
  name: 'base'
  params: {
    location: location
    tags: tags
  }
}

module cosmos 'main.bicep' = {
  scope: group
  name: 'cosmosdb'
  params: {
    location: location
    vectorDimensions: vectorDimensions
    principalIds: empty(principalId) ? [base.outputs.principalId] : [base.outputs.principalId, principalId]
    logAnalyticsWorkspaceId: base.outputs.workspaceId
  }
}

module storage 'storage.bicep' = {
  scope: group
  name: 'storage'
  params: {
    location: location
    principalIds: [base.outputs.principalId]
  }
}

module app 'agent-app.bicep' = {
  scope: group
  name: 'app'
  params: {
    location: location
    tags: tags
    environmentId: base.outputs.environmentId
    identityId: base.outputs.identityId
    clientId: base.outputs.clientId
    registry: base.outputs.registry
    image: agentImage
    endpoint: cosmos.outputs.endpoint
    database: cosmos.outputs.database
    blobs: storage.outputs.blobs
  }
}

output AZURE_RESOURCE_GROUP string = group.name
output AZURE_CONTAINER_REGISTRY_ENDPOINT string = base.outputs.registry
output COSMOSDB_ENDPOINT string = cosmos.outputs.endpoint
output COSMOSDB_DATABASE string = cosmos.outputs.database
output COSMOSDB_ARTIFACT_BLOBS string = storage.outputs.blobs
