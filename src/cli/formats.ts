/** What `export` writes. */
export const exportFormats = ['csv', 'json'] as const
export type ExportFormat = (typeof exportFormats)[number]

/** What `deliveries list` writes. */
export const listFormats = ['table', 'json'] as const
export type ListFormat = (typeof listFormats)[number]
