// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// knownUIDs are the fields of restored kinds that hold UIDs of objects. Those of true are rewritten by UID; the others
// are removed, or stay because they only have to be unique.
var knownUIDs = map[string]bool{
	"Chat.status.root.uid":                     true,
	"Chat.status.internal.parentUID":           true,
	"Chat.status.internal.turn.messageUID":     true,
	"Chat.status.internal.tail[].uid":          true,
	"Chat.status.internal.subChatCosts[].uid":  true,
	"Chat.status.chatClass":                    false,
	"Chat.status.chatClass.uid":                false,
	"Chat.status.namespaceClass":               false,
	"Chat.status.namespaceClass.uid":           false,
	"ChatMessage.spec.generation.chatUID":      true,
	"ChatMessage.spec.follows[].uid":           true,
	"ChatMessage.spec.generation.agents[].key": false, // Names of objects follow from it.
	"ChatMessage.status.chatUID":               true,
}

// mentionsUID finds fields that hold a UID by what they are called or said to be.
var mentionsUID = regexp.MustCompile(`\bUIDs?\b`)

func TestEveryUIDFieldIsKnown(t *testing.T) {
	found := map[string]bool{}
	for _, kind := range []string{"Chat", "ChatMessage", "ToolApproval"} {
		text, err := os.ReadFile("../../../config/crd/bases/parley.dev_" + strings.ToLower(kind) + "s.yaml")
		check.OK(t, err)
		var crd struct {
			Spec struct {
				Versions []struct {
					Schema struct{ OpenAPIV3Schema schemaNode }
				}
			}
		}
		check.OK(t, yaml.Unmarshal(text, &crd))
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.walk(kind, func(path, description string) {
			name := path[strings.LastIndex(path, ".")+1:]
			if strings.HasSuffix(strings.ToLower(name), "uid") || mentionsUID.MatchString(description) {
				found[path] = true
			}
		})
	}
	for path := range found {
		if _, known := knownUIDs[path]; !known {
			t.Errorf("%s may hold a UID: rewrite it in uids.go, or say in knownUIDs why not", path)
		}
	}
}

type schemaNode struct {
	Description string
	Properties  map[string]schemaNode
	Items       *schemaNode
}

func (s *schemaNode) walk(path string, visit func(path, description string)) {
	visit(path, s.Description)
	for name, property := range s.Properties {
		property.walk(path+"."+name, visit)
	}
	if s.Items != nil {
		s.Items.walk(path+"[]", visit)
	}
}

// TestStoredObjectsChangeInKnownFieldsOnly restores objects in which each field has a value.
func TestStoredObjectsChangeInKnownFieldsOnly(t *testing.T) {
	b := stored(t)
	chat, message, approval := &b.Chats[0], &b.Messages[0], &b.Approvals[0]
	u := uids{}
	for _, uid := range []string{chat.Status.Root.UID, chat.Status.Internal.ParentUID,
		chat.Status.Internal.Turn.MessageUID, chat.Status.Internal.Tail[0].UID, message.Spec.Generation.ChatUID,
		message.Spec.Follows[0].UID, message.Status.ChatUID, chat.Status.Internal.SubChatCosts[0].UID} {
		u[uid] = "new " + uid
	}
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	chat.Generation, message.Generation, approval.Generation = 7, 7, 7
	liveMessage := u.newMessage(message, "other")
	liveMessage.ResourceVersion, liveMessage.Generation = "99", 1
	liveMessage.Status = *u.messageStatus(message, liveMessage)
	liveChat := u.newChat(&member{chat: chat, backup: "1"}, "other")
	liveChat.Generation = 1
	liveChat.Status = *u.chatStatus(chat, liveChat, now)
	changed := map[string]bool{}
	diff("Chat.spec", asJSON(t, chat.Spec), asJSON(t, liveChat.Spec), changed)
	diff("Chat.status", asJSON(t, chat.Status), asJSON(t, liveChat.Status), changed)
	diff("ChatMessage.spec", asJSON(t, message.Spec), asJSON(t, liveMessage.Spec), changed)
	diff("ChatMessage.status", asJSON(t, message.Status), asJSON(t, liveMessage.Status), changed)
	diff("ToolApproval.status", asJSON(t, approval.Status), asJSON(t, *u.approvalStatus(approval, approval)), changed)
	want := []string{"Chat.status.chatClass", "Chat.status.namespaceClass",
		"Chat.status.settings", "Chat.status.conditions", "Chat.status.observedGeneration", "Chat.status.wait.for",
		"Chat.status.wait.message", "Chat.status.wait.reason", "Chat.status.wait.since", "Chat.status.wait.until",
		"Chat.status.requiresAction.deadline", "Chat.status.turn.waitingFor[].deadline",
		"Chat.status.idleSince", "Chat.status.expiresAt", "Chat.status.waitingSince",
		"ChatMessage.status.createdVersion", "ChatMessage.status.observedGeneration",
		"ChatMessage.status.conditions[].observedGeneration", "ToolApproval.status.observedGeneration",
		"ToolApproval.status.conditions[].observedGeneration"}
	for path, isRewritten := range knownUIDs {
		if isRewritten {
			want = append(want, path)
		}
	}
	got := slices.Sorted(maps.Keys(changed))
	slices.Sort(want)
	check.Equal(t, "changed fields", want, got)
	check.Equal(t, "root", "new "+chat.Status.Root.UID, liveChat.Status.Root.UID)
	check.Equal(t, "chat of the message", "new "+message.Spec.Generation.ChatUID, liveMessage.Spec.Generation.ChatUID)
}

// stored reads the objects that a release can have stored, as a backup has them.
func stored(t *testing.T) *Backup {
	t.Helper()
	b := &Backup{}
	for _, kind := range []string{"Chat", "ChatMessage", "ToolApproval", "ChatModelConfig", "ChatClass", "ChatQuota"} {
		text, err := os.ReadFile("../../../api/v1beta1/testdata/stored/v0.1.0/" + kind + ".yaml")
		check.OK(t, err)
		check.OK(t, b.Add(strings.NewReader(string(text))))
	}
	check.Equal(t, "settings", 3, len(b.Settings))
	return b
}

func asJSON(t *testing.T, object any) (fields any) {
	t.Helper()
	text, err := json.Marshal(object)
	check.OK(t, err)
	check.OK(t, json.Unmarshal(text, &fields))
	return fields
}

// diff notes the paths at which two values of JSON differ.
func diff(path string, a, b any, changed map[string]bool) {
	x, isObject := a.(map[string]any)
	y, isAlso := b.(map[string]any)
	v, isList := a.([]any)
	w, isListAlso := b.([]any)
	switch {
	case isObject && isAlso:
		for _, key := range slices.Concat(slices.Collect(maps.Keys(x)), slices.Collect(maps.Keys(y))) {
			diff(path+"."+key, x[key], y[key], changed)
		}
	case isList && isListAlso && len(v) == len(w):
		for i := range v {
			diff(path+"[]", v[i], w[i], changed)
		}
	case fmt.Sprint(a) != fmt.Sprint(b):
		changed[path] = true
	}
}

func TestUIDOfAMissingObjectStays(t *testing.T) {
	commits := []v1beta1.CommittedMessage{{Message: "a", UID: "gone"}, {Message: "b"}, {Message: "c", UID: "old"}}
	uids{"old": "new"}.commits(commits)
	check.Equal(t, "commits", []v1beta1.CommittedMessage{{Message: "a", UID: "gone"}, {Message: "b"},
		{Message: "c", UID: "new"}}, commits)
}
