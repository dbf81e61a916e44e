import type { OpenapiDocument } from '../openapi.ts'
import type { Row } from './content.ts'
import { fieldValue, type HeaderField, resolve, type Schema } from './shape.ts'

/** One row for each member of a schema, those of nested objects too, named by their way from the top. */
export function memberRows(api: OpenapiDocument, schema: Schema, required: string): Row[] {
  const described = new Map<Schema, string>()

  const rows = (object: Schema, prefix: string): Row[] =>
    Object.entries(object.properties ?? {}).flatMap(([name, member]) => {
      const path = prefix + name
      const isRequired = object.required?.includes(name) ?? false
      const { inner, suffix } = nested(member)
      const same = inner === undefined ? undefined : described.get(inner)
      if (inner !== undefined && same === undefined) described.set(inner, path)
      const text = (member.description ?? '') + (same === undefined ? '' : ` Entries as in \`${same}\`.`)
      const row: Row = { name: path, notes: [...notes(member), ...(isRequired ? [required] : [])], text }
      return [row, ...(inner === undefined || same !== undefined ? [] : rows(inner, `${path}${suffix}.`))]
    })

  return rows(resolve(api, schema), '')
}

/** The object inside a member, where there is one. */
function nested(member: Schema): { inner: Schema | undefined; suffix: string } {
  if (member.properties !== undefined) return { inner: member, suffix: '' }
  return member.items?.properties === undefined
    ? { inner: undefined, suffix: '' }
    : { inner: member.items, suffix: '[]' }
}

/** Type and limits in a few words. */
function notes(schema: Schema): string[] {
  const { type = 'any', items, minimum, maxItems } = schema
  const { format, minLength = 0, maxLength } = { ...schema, ...schema['x-after-trimming'] }
  const least = minLength === 0 ? 'at most' : `${minLength} to`
  return [
    items === undefined ? type : `${type} of ${items.type}s`,
    ...(format === undefined ? [] : [format]),
    ...(schema.const === undefined ? [] : [`always ${JSON.stringify(schema.const)}`]),
    ...(maxLength === undefined ? [] : [`${least} ${maxLength} characters`]),
    ...(minimum === undefined ? [] : [`at least ${minimum}`]),
    ...(maxItems === undefined || schema.const !== undefined ? [] : [`at most ${maxItems} entries`]),
  ]
}

/** One row for each response header field. `remark` says in which answers it stands. */
export function fieldRows(
  fields: Readonly<Record<string, HeaderField>> | undefined,
  remark: (name: string) => readonly string[] = () => [],
): Row[] {
  return Object.entries(fields ?? {}).map(([name, field]) => {
    const value = fieldValue(field)
    return {
      name,
      notes: [...remark(name), ...(field.required === true ? ['always'] : [])],
      text: field.description,
      ...(value === undefined ? {} : { value: { label: value.isConstant ? 'Value' : 'Example', text: value.text } }),
    }
  })
}
