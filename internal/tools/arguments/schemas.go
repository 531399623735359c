// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

// What schemas are made of. Only what every provider takes is in them: internal/generation/provider/schema.

// Object has these properties and no others.
func Object(properties map[string]any, required ...string) Schema {
	schema := Schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// Text is a string of so many characters.
func Text(least, most int, description string) Schema {
	return Schema{"type": "string", "minLength": least, "maxLength": most, "description": description}
}

// Integer is a whole number.
func Integer(least, most, fallback int, description string) Schema {
	return Schema{"type": "integer", "minimum": least, "maximum": most, "default": fallback, "description": description}
}

// Boolean is false unless it is given.
func Boolean(description string) Schema {
	return Schema{"type": "boolean", "default": false, "description": description}
}

// OneOf is one of the values.
func OneOf(description string, values ...string) Schema {
	return Schema{"type": "string", "enum": values, "description": description}
}
