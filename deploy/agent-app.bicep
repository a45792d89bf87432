// The example agent as a container app. Its services find their account by environment variables; there is no key.

targetScope = 'resourceGroup'

param location string = resourceGroup().location
param tags object = {}
param environmentId string
param identityId string
param clientId string
param registry string

@description('Empty before the first `azd deploy`: a page that says hello holds the place.')
param image string = ''
param endpoint string
param database string
param blobs string

var uri = 'cosmosdb://${split(replace(endpoint, 'https://', ''), ':')[0]}/${database}'

resource app 'Microsoft.App/containerApps@2024-03-01' = {
  name: 'agent'
  location: location
  tags: union(tags, { 'azd-service-name': 'agent' })
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${identityId}': {}
    }
  }
  properties: {
    managedEnvironmentId: environmentId
    configuration: {
      // Internal: `adk api_server` does not authenticate callers.
      ingress: {
        external: false
        targetPort: 8000
      }
      registries: [
        {
          server: registry
          identity: identityId
        }
      ]
    }
    template: {
      containers: [
        {
          name: 'agent'
          image: empty(image) ? 'mcr.microsoft.com/azuredocs/containerapps-helloworld:latest' : image
          resources: {
            cpu: json('0.5')
            memory: '1Gi'
          }
          env: [
            { name: 'AZURE_CLIENT_ID', value: clientId }
            { name: 'SERVICES_URI', value: uri }
            { name: 'COSMOSDB_ARTIFACT_BLOBS', value: blobs }
          ]
        }
      ]
      scale: {
        minReplicas: 1
        maxReplicas: 5
      }
    }
  }
}
