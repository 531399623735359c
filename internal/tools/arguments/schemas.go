// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

// What schemas are made of. Only what every provider takes is in them: internal/generation/schema.

func object(properties map[string]any, required ...string) map[string]any {
	schema := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func words(least, most int, description string) map[string]any {
	return map[string]any{"type": "string", "minLength": least, "maxLength": most, "description": description}
}

func number(least, most, fallback int, description string) map[string]any {
	return map[string]any{
		"type": "integer", "minimum": least, "maximum": most, "default": fallback, "description": description,
	}
}

func flag(description string) map[string]any {
	return map[string]any{"type": "boolean", "default": false, "description": description}
}

func oneOf(description string, values ...string) map[string]any {
	return map[string]any{"type": "string", "enum": values, "description": description}
}

// offered is to which chats the tools are offered.
const offered = "chats that have a workspace"
