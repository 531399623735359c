// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package text has no code: its packages are about texts and JSON, whoever wrote them. They import no other folder of
// internal/.
//
//	printable   what terminals and pages may show
//	clip        texts cut to a length
//	content     the hash of a message, by which edits are found
//	compose     the objects of messages and approvals
//	firstwords  the first title of a chat
//	jsonschema  JSON checked by a schema
//	skill       skills: front matter, names and index
//	version     the version of the programs
package text
