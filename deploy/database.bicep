// The database, its containers and the data-plane role, in an existing account.
//
//   az deployment group create --resource-group <group> --template-file deploy/database.bicep \
//     --parameters accountName=<account> principalIds="['<object id of the managed identity>']"
//
// containers.json is written by `make containers` from the definitions that the code itself uses.

targetScope = 'resourceGroup'

@description('Name of the account.')
param accountName string

@description('Name of the database (COSMOSDB_DATABASE).')
param databaseName string = 'adk'

@description('Other names for containers, by default name: { sessions: \'chats\' } for COSMOSDB_SESSION_CONTAINER=chats.')
param containerNames object = {}

@description('Object ids of the identities that may read and write.')
param principalIds string[] = []

@description('Autoscale: upper bound in RU/s, shared by the containers. 0 for a serverless account.')
@minValue(0)
param autoscaleMaxThroughput int = 0

@description('Dimensions of the embedder of memories. 0: memories are found by words only. The account needs the capability EnableNoSQLVectorSearch.')
@minValue(0)
@maxValue(4096)
param vectorDimensions int = 0

var containers = loadJsonContent('containers.json')

// Cosmos DB Built-in Data Contributor
var dataContributor = '00000000-0000-0000-0000-000000000002'

var vectors = vectorDimensions > 0
// Azure refuses a vector policy on a container that shares the throughput of its database.
var memoryOptions = vectors && autoscaleMaxThroughput > 0 ? { autoscaleSettings: { maxThroughput: autoscaleMaxThroughput } } : {}

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-10-15' existing = {
  name: accountName
}

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2025-10-15' = {
  parent: account
  name: databaseName
  properties: {
    resource: {
      id: databaseName
    }
    options: autoscaleMaxThroughput == 0 ? {} : { autoscaleSettings: { maxThroughput: autoscaleMaxThroughput } }
  }
}

resource container 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2025-10-15' = [for each in items(containers.plain): {
  parent: database
  name: contains(containerNames, each.key) ? containerNames[each.key] : each.key
  properties: {
    resource: union(
      each.value,
      vectors && each.key == 'memories' ? {
        indexingPolicy: containers.vectors.indexingPolicy
        vectorEmbeddingPolicy: {
          vectorEmbeddings: [union(containers.vectors.vectorEmbedding, { dimensions: vectorDimensions })]
        }
      } : {},
      { id: contains(containerNames, each.key) ? containerNames[each.key] : each.key }
    )
    options: each.key == 'memories' ? memoryOptions : {}
  }
}]

// One after the other: Azure refuses parallel role assignments on one account (412).
@batchSize(1)
resource access 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2025-10-15' = [for principalId in principalIds: {
  parent: account
  name: guid(account.id, databaseName, principalId, dataContributor)
  properties: {
    principalId: principalId
    roleDefinitionId: '${account.id}/sqlRoleDefinitions/${dataContributor}'
    scope: '${account.id}/dbs/${database.name}'
  }
}]
