/** Checks a value against the JSON Schema that is shown to the model: OpenClaw itself does not check arguments. */

/** The part of JSON Schema that the tools and the configuration use. */
export interface Schema {
  type?: "string" | "number" | "integer" | "boolean" | "object" | "array";
  description?: string;
  enum?: readonly string[];
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: readonly string[];
  additionalProperties?: boolean | Schema;
}

/** Everything that is wrong with a value, as sentences. */
export function findings(schema: Schema, value: unknown, name = "The arguments"): string[] {
  if (schema.type && !isOf(schema.type, value)) return [`${name} must be ${article(schema.type)}.`];
  if (typeof value === "string") {
    const { minLength = 0, maxLength = Infinity } = schema;
    if (schema.enum && !schema.enum.includes(value)) return [`${name} must be one of ${schema.enum.join(", ")}.`];
    if (value.trim().length < minLength) return [`${name} must not be empty.`];
    if (value.length > maxLength) return [`${name} must have at most ${maxLength} characters.`];
  } else if (typeof value === "number") {
    const { minimum = -Infinity, maximum = Infinity } = schema;
    if (!(value >= minimum && value <= maximum)) return [`${name} must be from ${minimum} to ${maximum}.`];
  } else if (Array.isArray(value)) {
    return value.flatMap((item, index) => (schema.items ? findings(schema.items, item, `${name}[${index}]`) : []));
  } else if (schema.properties || typeof schema.additionalProperties === "object") {
    return fieldFindings(schema, value as Record<string, unknown>);
  }
  return [];
}

function fieldFindings(schema: Schema, fields: Record<string, unknown>): string[] {
  const { properties = {}, required = [], additionalProperties = true } = schema;
  const found = required.filter((name) => fields[name] === undefined).map((name) => `"${name}" is missing.`);
  for (const [name, value] of Object.entries(fields)) {
    const known = Object.hasOwn(properties, name) ? properties[name] : additionalProperties;
    if (known === false) {
      found.push(`There is no "${name}" here; it takes: ${Object.keys(properties).join(", ") || "nothing"}.`);
    } else if (typeof known === "object" && value !== undefined) {
      found.push(...findings(known, value, `"${name}"`));
    }
  }
  return found;
}

function isOf(type: string, value: unknown): boolean {
  if (type === "array") return Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof value === type;
}

function article(type: string): string {
  return /^[aio]/.test(type) ? `an ${type}` : `a ${type}`;
}
