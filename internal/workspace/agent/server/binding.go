// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json/v2"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"sync"
	"time"

	"parley.dev/parley/internal/workspace/agent/durable"
	"parley.dev/parley/internal/workspace/protocol"
)

// chatUID matches the UID of an object: API servers make UUIDs.
var chatUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)

// binding is the chat that the workspace belongs to. The first one is stored, and never changes. It is safe for
// concurrent use.
type binding struct {
	file string

	mu   sync.Mutex
	chat string
	err  error
}

// readBinding returns no chat if there is no binding yet.
func readBinding(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var kept protocol.Binding
	if err := json.Unmarshal(raw, &kept, json.RejectUnknownMembers(true)); err != nil {
		return "", fmt.Errorf("decoding it: %w", err)
	}
	if !chatUID.MatchString(kept.Chat) {
		return "", errors.New("it names no chat")
	}
	return kept.Chat, nil
}

// bind binds the workspace, unless it is bound already.
func (b *binding) bind(chat string) error {
	if !chatUID.MatchString(chat) {
		return refuse(protocol.BadRequest, "The chat must be the UID of one: letters, digits and dashes, at most 64.")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refusal(chat); err == nil || b.chat != "" || b.err != nil {
		return err
	}
	raw, err := json.Marshal(protocol.Binding{Chat: chat})
	if err == nil {
		err = durable.Write(b.file, raw, 0o600)
	}
	if err != nil {
		b.chat, b.err = readBinding(b.file) // It may have been written nevertheless.
		return fmt.Errorf("keeping the binding: %w", err)
	}
	b.chat = chat
	return nil
}

// since is when the workspace was bound.
func (b *binding) since() (time.Time, error) {
	info, err := os.Stat(b.file)
	if err != nil {
		return time.Time{}, fmt.Errorf("finding the time of the binding: %w", err)
	}
	return info.ModTime(), nil
}

// check reports why a request for a chat is refused.
func (b *binding) check(chat string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal(chat)
}

// refusal is the result of check. The caller holds mu.
func (b *binding) refusal(chat string) error {
	switch {
	case b.err != nil:
		return refuse(protocol.Internal,
			"The file with the chat of this workspace cannot be read, so it refuses all requests. It must be replaced.")
	case b.chat == "":
		return refuse(protocol.Unbound, "This workspace belongs to no chat yet.")
	case b.chat != chat:
		return refuse(protocol.BoundToAnother, "This workspace belongs to another chat until its pod is recreated.")
	}
	return nil
}
