import type { OpenapiDocument } from '../openapi.ts'
export function docsPage(api: OpenapiDocument, _base: string) {
  return { html: `<!doctype html><title>${api.info.title}</title>`, securityFields: {} }
}
