// Everything that sessions need, from nothing: an account, and in it what sessions.bicep makes.
//
//   az deployment group create --resource-group <group> --template-file deploy/main.bicep \
//     --parameters principalIds="['<object id of the managed identity>']"
//
// For an account that exists already, deploy sessions.bicep alone.

targetScope = 'resourceGroup'

@description('Name of the account: 3 to 44 lower-case letters, digits and hyphens, unique in the world.')
@minLength(3)
@maxLength(44)
param accountName string = 'adk-${uniqueString(resourceGroup().id)}'

@description('Region of the account.')
param location string = resourceGroup().location

@description('serverless: pay per request. autoscale: pay per hour for the peak, for steady load. It cannot be changed later.')
@allowed([
  'serverless'
  'autoscale'
])
param capacity string = 'serverless'

@description('Upper bound of autoscale in RU/s, shared by both containers. A tenth of it is the floor.')
@minValue(1000)
param autoscaleMaxThroughput int = 1000

@description('true: Entra ID alone, the account\'s keys open nothing.')
param disableLocalAuth bool = true

@description('Name of the database (COSMOSDB_DATABASE).')
param databaseName string = 'adk'

@description('Name of the container of session and state documents (COSMOSDB_SESSION_CONTAINER).')
param sessionContainerName string = 'sessions'

@description('Name of the container of the event log (COSMOSDB_CONVERSATION_CONTAINER).')
param conversationContainerName string = 'events'

@description('Object ids of the identities that may read and write sessions.')
param principalIds string[] = []

resource account 'Microsoft.DocumentDB/databaseAccounts@2024-11-15' = {
  name: accountName
  location: location
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    capabilities: capacity == 'serverless' ? [{ name: 'EnableServerless' }] : []
    locations: [
      {
        locationName: location
        failoverPriority: 0
      }
    ]
    // Two regions could both accept the same place in a session's log: one of the two events would be lost.
    enableMultipleWriteLocations: false
    consistencyPolicy: {
      defaultConsistencyLevel: 'Session'
    }
    disableLocalAuth: disableLocalAuth
    minimalTlsVersion: 'Tls12'
    backupPolicy: {
      type: 'Continuous'
      continuousModeProperties: {
        tier: 'Continuous7Days'
      }
    }
  }
}

module sessions 'sessions.bicep' = {
  name: '${deployment().name}-sessions'
  params: {
    accountName: account.name
    databaseName: databaseName
    sessionContainerName: sessionContainerName
    conversationContainerName: conversationContainerName
    principalIds: principalIds
    autoscaleMaxThroughput: capacity == 'autoscale' ? autoscaleMaxThroughput : 0
  }
}

@description('COSMOSDB_ENDPOINT')
output endpoint string = account.properties.documentEndpoint

@description('COSMOSDB_DATABASE')
output database string = databaseName
