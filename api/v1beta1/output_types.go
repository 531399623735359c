// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// MaxOutputSchemaBytes is the most bytes of the schema of an output: 64 KiB.
	MaxOutputSchemaBytes = 64 << 10
	// MaxOutputBytes is the most bytes of an output that the status of a chat holds: 8 KiB.
	MaxOutputBytes = 8 << 10
	// MaxOutputTries is how many replies of a turn in a row may not match the schema: 3.
	MaxOutputTries = 3
)

// OutputFormat asks for an answer that is JSON. Calls of tools come before it, as in every turn.
type OutputFormat struct {
	// schema is the JSON Schema (2020-12) that the answer matches, at most 64 KiB, of type object, without references to
	// other documents.
	// An answer that does not match goes back to the model with what is wrong, twice; then the turn fails with
	// OutputInvalid.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +required
	Schema runtime.RawExtension `json:"schema"`
}

// ToolChoice is whether a reply calls tools.
// +kubebuilder:validation:XValidation:rule="has(self.tool) == (self.type == 'Tool')",message="tool goes with type Tool: it is the name of the tool that the model must call"
type ToolChoice struct {
	// type is who decides. Auto: the model. None: the reply calls no tool. Required: it calls at least one. Tool: it calls
	// the named one.
	// +required
	Type ToolChoiceType `json:"type"`

	// tool is the name of the tool, with type Tool.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Tool string `json:"tool,omitempty"`
}

// ToolChoiceType is who decides whether a reply calls tools.
// +kubebuilder:validation:Enum=Auto;None;Required;Tool
type ToolChoiceType string

const (
	// ToolChoiceAuto leaves it to the model.
	ToolChoiceAuto ToolChoiceType = "Auto"
	// ToolChoiceNone makes the reply call no tool.
	ToolChoiceNone ToolChoiceType = "None"
	// ToolChoiceRequired makes the reply call at least one tool.
	ToolChoiceRequired ToolChoiceType = "Required"
	// ToolChoiceTool makes the reply call the named tool.
	ToolChoiceTool ToolChoiceType = "Tool"
)

// StructuredOutput is how an answer is asked for that matches a JSON Schema.
// +kubebuilder:validation:Enum=Native;Tool
type StructuredOutput string

const (
	// StructuredOutputNative asks by the field that the protocol has for it.
	StructuredOutputNative StructuredOutput = "Native"
	// StructuredOutputTool asks by a tool that the model must call.
	StructuredOutputTool StructuredOutput = "Tool"
)

// MessageOutput says how the text of a reply stands to the schema that the chat or the message asks for.
type MessageOutput struct {
	// problem says what does not match; absent: the text of the message is the output.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Problem string `json:"problem,omitempty"`

	// value is the output, if it has at most 8 KiB.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Value *runtime.RawExtension `json:"value,omitempty"`
}
