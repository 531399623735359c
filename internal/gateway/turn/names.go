// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

const (
	// LabelRequest on a message is a hash of the request that created it, by which a repeated request finds it.
	LabelRequest = "parley.dev/request"
	// LabelProtocol on a chat means that a client of these protocols created it, and owns its instructions.
	LabelProtocol = "parley.dev/protocol"
	// AnnotationMetadata on a message is the metadata of the request that created it: a JSON object of texts.
	AnnotationMetadata = "parley.dev/metadata"
	// ProtocolOpenAI is its value for chats of OpenAI's clients.
	ProtocolOpenAI = "openai"
)

// maxNames are the most characters of the names of chats and of messages.
const (
	maxChatName    = 200
	maxMessageName = 253
)

var subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// IsChatName reports whether a chat can have the name.
func IsChatName(name string) bool { return len(name) <= maxChatName && subdomain.MatchString(name) }

// IsMessageName reports whether a message can have the name.
func IsMessageName(name string) bool {
	return len(name) <= maxMessageName && subdomain.MatchString(name)
}

// IsNamespace reports whether a namespace can have the name.
func IsNamespace(name string) bool {
	const most = 63
	return len(name) <= most && subdomain.MatchString(name) && !strings.Contains(name, ".")
}

// CallID is the id of a call for clients: its id in the chat, an underscore, and the name of the chat, which has none.
// So a client that resends a conversation continues the chat that waits for its results.
func CallID(id, chat string) string { return id + "_" + chat }

// SplitCall splits a CallID into the id in the chat, and the name of the chat. It is false for other ids.
func SplitCall(call string) (id, chat string, ok bool) {
	const maxID = 128
	i := strings.LastIndexByte(call, '_')
	if i < 1 || i > maxID || !IsChatName(call[i+1:]) {
		return "", "", false
	}
	return call[:i], call[i+1:], true
}

// hashLength is how many characters a hash in a name has: 80 bits.
const hashLength = 20

// Hash is a short hash of texts, each apart from the others.
func Hash(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		_, _ = fmt.Fprintf(h, "%d:", len(text)) // It never fails.
		_, _ = io.WriteString(h, text)
	}
	return hex.EncodeToString(h.Sum(nil))[:hashLength]
}

// Hash identifies equal requests of one caller. It ignores ids that clients generate for items each time.
func (r *Request) Hash(caller string) string {
	items, _ := json.Marshal(r.Items) // Texts always have a JSON.
	parts := []string{caller, r.Namespace, r.Chat, r.Previous, r.Thread, r.Model, string(items)}
	// Requests without settings keep the hash of earlier versions.
	if r.Output != nil || r.ToolChoice != nil || len(r.Stop) > 0 {
		settings, _ := json.Marshal([]any{r.Output, r.ToolChoice, r.Stop})
		parts = append(parts, string(settings))
	}
	// The same words may follow other results. A conversation that is resent has the calls, and keeps its hash.
	if len(r.results) > 0 && !r.News().Resent {
		results, _ := json.Marshal(r.results)
		parts = append(parts, string(results))
	}
	return Hash(parts...)
}

// ChatName is the name of the chat that follows from the request; empty if it is the chat of Previous, or a random name
// is needed.
func (r *Request) ChatName(caller string) string {
	switch n := r.News(); {
	case r.Chat != "":
		return r.Chat
	case r.Previous != "":
		return ""
	case r.Thread != "":
		return "thread-" + Hash(caller, r.Thread)
	case n.Chat != "":
		return n.Chat
	case r.Key != "":
		return "chat-" + Hash(caller, r.Key)
	}
	return ""
}

// MessageName is the name of the message that the request creates in a chat; empty if a random name is needed. A
// request with a Key or results, or that resends the conversation, always has the same name.
func (r *Request) MessageName(caller, chat string) string {
	n := r.News()
	switch {
	case r.Key != "":
		return chat + "-" + Hash(caller, r.Key)
	case n.Resent, len(n.Results)+len(r.results) > 0, r.Thread != "":
		return chat + "-" + r.Hash(caller)
	}
	return ""
}
