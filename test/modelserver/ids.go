// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"crypto/rand"
	"strings"
)

// statusOverloaded is Anthropic's status for a lack of capacity; net/http has no name for it.
const statusOverloaded = 529

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()) }

// itemID is the id of an item of the responses protocol.
func itemID(kind blockKind) string {
	return newID(map[blockKind]string{textBlock: "msg_", reasoningBlock: "rs_", callBlock: "fc_"}[kind])
}

// callID is the id of a tool call in the form of the protocol.
func callID(p Protocol) string {
	switch p {
	case Anthropic:
		return newID("toolu_")
	case Bedrock:
		return newID("toolu_bdrk_")
	}
	return newID("call_")
}
