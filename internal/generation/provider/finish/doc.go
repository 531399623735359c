// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package finish says how the reply of a model ended: it maps the finish reason of each protocol to an outcome, and
// turns a reply that answers nothing into an error.
//
// Invariants: a reply whose finish reason is not in the table is never complete; a tool call that the model did not
// finish is never handed on; the provider's own word is kept.
package finish
