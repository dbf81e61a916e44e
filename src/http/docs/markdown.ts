import type { OpenapiDocument } from '../openapi.ts'
export const docsMarkdown = (api: OpenapiDocument, _base: string): string => `# ${api.info.title}\n`
