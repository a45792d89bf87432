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

@description('serverless: pay per request. autoscale: pay per hour for the peak, for steady load. Serverless can become provisioned later, not the other way.')
@allowed([
  'serverless'
  'autoscale'
])
param capacity string = 'serverless'

@description('Upper bound of autoscale in RU/s, shared by the containers. A tenth of it is the minimum.')
@minValue(1000)
param autoscaleMaxThroughput int = 1000

@description('1,000 RU/s and 25 GB for nothing, in one account of a subscription. Only with autoscale.')
param freeTier bool = false

@description('Dimensions of the embedder of memories. 0: memories are found by words only.')
@minValue(0)
@maxValue(4096)
param vectorDimensions int = 0

@description('true: only Entra ID is accepted, and the account\'s keys are disabled.')
param disableLocalAuth bool = true

@description('Name of the database (COSMOSDB_DATABASE).')
param databaseName string = 'adk'

@description('Other names for containers, by default name: { sessions: \'chats\' } for COSMOSDB_SESSION_CONTAINER=chats.')
param containerNames object = {}

@description('Object ids of the identities that may read and write.')
param principalIds string[] = []

@description('Addresses or ranges that may reach the account, such as [\'203.0.113.7\']. Empty: any address, unless there is a private endpoint.')
param allowedAddresses string[] = []

@description('Id of a subnet for a private endpoint. The account is then closed to the internet, except for allowedAddresses.')
param privateEndpointSubnetId string = ''

@description('Id of the private DNS zone privatelink.documents.azure.com, linked to the network. Only with privateEndpointSubnetId.')
param privateDnsZoneId string = ''

@description('Id of a Log Analytics workspace for the account\'s logs and metrics.')
param logAnalyticsWorkspaceId string = ''

var serverless = capacity == 'serverless'
var private = !empty(privateEndpointSubnetId)

resource account 'Microsoft.DocumentDB/databaseAccounts@2025-10-15' = {
  name: accountName
  location: location
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    enableFreeTier: freeTier && !serverless
    // A whole list each time: one that is left out is taken away.
    capabilities: concat(
      serverless ? [{ name: 'EnableServerless' }] : [],
      vectorDimensions > 0 ? [{ name: 'EnableNoSQLVectorSearch' }] : []
    )
    locations: [
      {
        locationName: location
        failoverPriority: 0
      }
    ]
    // Two regions could each accept an event with the same sequence number, and one would be lost.
    enableMultipleWriteLocations: false
    // Autoscale follows the busiest physical partition alone, not all of them as busy as that one.
    enablePerRegionPerPartitionAutoscale: !serverless
    // What nobody waits for (exports, purges, the session documents) is throttled first.
    enablePriorityBasedExecution: !serverless
    consistencyPolicy: {
      defaultConsistencyLevel: 'Session'
    }
    disableLocalAuth: disableLocalAuth
    minimalTlsVersion: 'Tls12'
    publicNetworkAccess: private && empty(allowedAddresses) ? 'Disabled' : 'Enabled'
    ipRules: map(allowedAddresses, address => { ipAddressOrRange: address })
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
    autoscaleMaxThroughput: serverless ? 0 : autoscaleMaxThroughput
    vectorDimensions: vectorDimensions
  }
}

resource endpoint 'Microsoft.Network/privateEndpoints@2024-05-01' = if (private) {
  name: '${accountName}-private'
  location: location
  properties: {
    subnet: {
      id: privateEndpointSubnetId
    }
    privateLinkServiceConnections: [
      {
        name: 'cosmosdb'
        properties: {
          privateLinkServiceId: account.id
          groupIds: ['Sql']
        }
      }
    ]
  }
}

resource dns 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2024-05-01' = if (private && !empty(privateDnsZoneId)) {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: 'cosmosdb'
        properties: {
          privateDnsZoneId: privateDnsZoneId
        }
      }
    ]
  }
}

resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = if (!empty(logAnalyticsWorkspaceId)) {
  scope: account
  name: 'cosmosservice'
  properties: {
    workspaceId: logAnalyticsWorkspaceId
    logAnalyticsDestinationType: 'Dedicated' // tables such as CDBDataPlaneRequests, not AzureDiagnostics
    // No query texts and no partition keys: they name users and sessions.
    logs: [
      { category: 'DataPlaneRequests', enabled: true }
      { category: 'ControlPlaneRequests', enabled: true }
      { category: 'PartitionKeyRUConsumption', enabled: false }
      { category: 'QueryRuntimeStatistics', enabled: false }
    ]
    metrics: [
      { category: 'Requests', enabled: true }
    ]
  }
}

@description('COSMOSDB_ENDPOINT')
output endpoint string = account.properties.documentEndpoint

@description('COSMOSDB_DATABASE')
output database string = databaseName
