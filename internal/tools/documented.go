// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

// Documented is a Tool that has a section in docs/tools.md, as every built-in one must.
type Documented interface {
	Tool
	// Reference is what people read of the tool besides what the model reads.
	Reference() Reference
}

// Reference is what people read of a tool: what comes back, what can go wrong, and what bounds it.
type Reference struct {
	// Offered says to which chats the tool is offered, as the end of a sentence.
	Offered string
	// Result is a value of the struct that a call returns as JSON. The tags json and doc of its fields are shown.
	Result any
	// Errors are what the model reads in place of a result; sentences.
	Errors []string
	// Limits are what bounds arguments, results and time; sentences.
	Limits []string
}
