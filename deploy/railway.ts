// One instance with the list on a volume (docs/platforms.md#railway). Put in the address that visitors use.
import { defineRailway, image, project, service, volume } from 'railway/iac'

export default defineRailway(() => {
  const list = volume('list', { sizeMB: 1024 })
  const waitlist = service('waitlist', {
    source: image('waitlist:0.1.0'),
    replicas: 1,
    healthcheck: '/api/health',
    healthcheckTimeout: 60,
    domains: [{ domain: 'waitlist.example.com', port: 8080 }],
    volumeMounts: { '/data': list },
    env: {
      PORT: '8080',
      BASE_URL: 'https://waitlist.example.com',
      // The visitor, then an edge of Railway's, whose address changes.
      TRUST_PROXY: '2',
      // Otherwise it is killed as soon as it is told to stop.
      RAILWAY_DEPLOYMENT_DRAINING_SECONDS: '15',
    },
  })
  return project('waitlist', { resources: [waitlist, list] })
})
