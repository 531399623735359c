// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// CallDigest is the digest of what people see of a call: the SHA-256 of its name, input, inputRequests and proposal,
// each as a netstring (its length in bytes, a colon, its bytes, a comma). A client that computes it from what it has
// shown proves that it has shown all of it.
func (c *PendingToolCall) CallDigest() string {
	sum := sha256.New()
	for _, field := range []string{c.Name, c.Input, c.InputRequests, c.Proposal} {
		fmt.Fprintf(sum, "%d:%s,", len(field), field)
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}
