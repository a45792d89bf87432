// The database, its two containers and the data-plane role, in an account that exists.
//
//   az deployment group create --resource-group <group> --template-file deploy/sessions.bicep \
//     --parameters accountName=<account> principalIds="['<object id of the managed identity>']"
//
// containers.json is written by `make containers` from the definitions that the code itself uses.

targetScope = 'resourceGroup'

@description('Name of the account.')
param accountName string

@description('Name of the database (COSMOSDB_DATABASE).')
param databaseName string = 'adk'

@description('Name of the container of session and state documents (COSMOSDB_SESSION_CONTAINER).')
param sessionContainerName string = 'sessions'

@description('Name of the container of the event log (COSMOSDB_CONVERSATION_CONTAINER).')
param conversationContainerName string = 'events'

@description('Object ids of the identities that may read and write sessions.')
param principalIds string[] = []

@description('Autoscale: upper bound in RU/s, shared by both containers. 0 for a serverless account.')
@minValue(0)
param autoscaleMaxThroughput int = 0

var containers = loadJsonContent('containers.json')

// Cosmos DB Built-in Data Contributor
var dataContributor = '00000000-0000-0000-0000-000000000002'

resource account 'Microsoft.DocumentDB/databaseAccounts@2024-11-15' existing = {
  name: accountName
}

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2024-11-15' = {
  parent: account
  name: databaseName
  properties: {
    resource: {
      id: databaseName
    }
    options: autoscaleMaxThroughput == 0 ? {} : { autoscaleSettings: { maxThroughput: autoscaleMaxThroughput } }
  }
}

resource sessionContainer 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: sessionContainerName
  properties: {
    resource: union(containers.sessions, { id: sessionContainerName })
  }
}

resource conversationContainer 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2024-11-15' = {
  parent: database
  name: conversationContainerName
  properties: {
    resource: union(containers.events, { id: conversationContainerName })
  }
}

resource access 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2024-11-15' = [for principalId in principalIds: {
  parent: account
  name: guid(account.id, databaseName, principalId, dataContributor)
  properties: {
    principalId: principalId
    roleDefinitionId: '${account.id}/sqlRoleDefinitions/${dataContributor}'
    scope: '${account.id}/dbs/${database.name}'
  }
}]
