// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
)

// fitting are ids of calls that can stand in a key as they are. They have no dot, so that none looks like a hash.
var fitting = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// plainUID is a UID as API servers make them.
var plainUID = regexp.MustCompile(`^[0-9a-f-]{36}$`)

// key is Call.Key: <chat UID>.<version of the reply>.<id of the call>. Ids come from models, and those of imported
// messages from anywhere: what is not fitting stands in it as its hash, behind a dot of its own.
func (b *Batch) key(id string) string {
	chat := string(b.Chat.UID)
	if !plainUID.MatchString(chat) {
		chat = hash(chat)
	}
	if !fitting.MatchString(id) {
		id = "." + hash(id)
	}
	return fmt.Sprintf("%s.%d.%s", chat, max(0, b.Reply), id)
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
