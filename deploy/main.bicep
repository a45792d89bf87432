// Everything that the services need: a new account, and in it what database.bicep creates.
//
//   az deployment group create --resource-group <group> --template-file deploy/main.bicep \
//     --parameters principalIds="['<object id of the managed identity>']"
//
// For an existing account, deploy only database.bicep.

targetScope = 'resourceGroup'

@description('Name of the account: 3 to 44 lower-case letters, digits and hyphens, globally unique.')
@minLength(3)
@maxLength(44)
param accountName string = 'adk-${uniqueString(resourceGroup().id)}'

@description('Region of the account.')
param location string = resourceGroup().location

@description('serverless: pay per request. autoscale: pay per hour for the peak, for steady load. This cannot be changed later.')
@allowed([
  'serverless'
  'autoscale'
])
param capacity string = 'serverless'

@description('Upper bound of autoscale in RU/s, shared by all containers. A tenth of it is the minimum.')
@minValue(1000)
param autoscaleMaxThroughput int = 1000

@description('true: only Entra ID is accepted, and the account\'s keys are disabled.')
param disableLocalAuth bool = true

@description('Name of the database (COSMOSDB_DATABASE).')
param databaseName string = 'adk'

@description('Other names for containers, by default name: { sessions: \'chats\' } for COSMOSDB_SESSION_CONTAINER=chats.')
param containerNames object = {}

@description('Object ids of the identities that may read and write.')
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
    // Two regions could each accept an event for the same place in a session's log, and one would be lost.
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

module database 'database.bicep' = {
  name: '${deployment().name}-database'
  params: {
    accountName: account.name
    databaseName: databaseName
    containerNames: containerNames
    principalIds: principalIds
    autoscaleMaxThroughput: capacity == 'autoscale' ? autoscaleMaxThroughput : 0
  }
}

@description('COSMOSDB_ENDPOINT')
output endpoint string = account.properties.documentEndpoint

@description('COSMOSDB_DATABASE')
output database string = databaseName
