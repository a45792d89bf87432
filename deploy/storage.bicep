// Storage for large artifacts: a storage account, a blob container, and the role to read and write it.
//
//   az deployment group create --resource-group <group> --template-file deploy/storage.bicep \
//     --parameters principalIds="['<object id of the managed identity>']"
//
// Set COSMOSDB_ARTIFACT_BLOBS to the output `blobs`.

targetScope = 'resourceGroup'

@description('Name of the storage account: 3 to 24 lower-case letters and digits, globally unique.')
@minLength(3)
@maxLength(24)
param storageName string = 'adk${uniqueString(resourceGroup().id)}'

@description('Region, the same as that of the Cosmos DB account.')
param location string = resourceGroup().location

@description('Name of the blob container.')
param containerName string = 'artifacts'

@description('Object ids of the identities that may read and write.')
param principalIds string[] = []

@description('What these identities are. A new managed identity needs ServicePrincipal: without it, Azure looks it up where it may not have arrived yet.')
@allowed([
  'ServicePrincipal'
  'User'
  'Group'
])
param principalType string = 'ServicePrincipal'

@description('Addresses or ranges that may reach the storage account. Empty: any address.')
param allowedAddresses string[] = []

// Storage Blob Data Contributor
var blobDataContributor = 'ba92f5b4-2d11-453d-a403-e96b0029c9fe'

resource storage 'Microsoft.Storage/storageAccounts@2023-05-01' = {
  name: storageName
  location: location
  kind: 'StorageV2'
  sku: {
    name: 'Standard_LRS'
  }
  properties: {
    // Only Entra ID is accepted: the account's keys are disabled, and nothing is public.
    allowSharedKeyAccess: false
    allowBlobPublicAccess: false
    minimumTlsVersion: 'TLS1_2'
    supportsHttpsTrafficOnly: true
    networkAcls: {
      defaultAction: empty(allowedAddresses) ? 'Allow' : 'Deny'
      bypass: 'AzureServices'
      ipRules: map(allowedAddresses, address => { value: address, action: 'Allow' })
    }
  }
}

resource blobs 'Microsoft.Storage/storageAccounts/blobServices@2023-05-01' = {
  parent: storage
  name: 'default'
  properties: {
    // Erased data must be gone: no copies of deleted blobs are kept.
    deleteRetentionPolicy: {
      enabled: false
    }
    isVersioningEnabled: false
  }
}

resource container 'Microsoft.Storage/storageAccounts/blobServices/containers@2023-05-01' = {
  parent: blobs
  name: containerName
  properties: {
    publicAccess: 'None'
  }
}

// On this container, not on the account: the services need nothing else there.
@batchSize(1)
resource access 'Microsoft.Authorization/roleAssignments@2022-04-01' = [for principalId in principalIds: {
  scope: container
  name: guid(container.id, principalId, blobDataContributor)
  properties: {
    principalId: principalId
    principalType: principalType
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', blobDataContributor)
  }
}]

@description('COSMOSDB_ARTIFACT_BLOBS')
output blobs string = '${storage.properties.primaryEndpoints.blob}${containerName}'
