// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package restore

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

const kinds = "chats,chatmessages,toolapprovals,chatmodelconfigs,chatclasses,chatquotas,configmaps"

func TestBackupOfManyChatsIsRestored(t *testing.T) {
	model, url := newModel(t)
	from := newRoom(t, origin)
	newScene(from, url)
	file := filepath.Join(t.TempDir(), "backup.yaml")
	check.OK(t, os.WriteFile(file, []byte(from.kubectl("get", kinds, "-o", "yaml")), 0o600))
	before := from.views()

	t.Run("into another cluster", func(t *testing.T) {
		checkRestore(t, model, newRoom(t, target), before, file)
	})
	t.Run("into another namespace", func(t *testing.T) {
		checkRestore(t, model, newRoom(t, origin), before, file)
	})
	t.Run("after a deletion", func(t *testing.T) {
		from.t = t
		from.kubectl("delete", "chats", "--all")
		from.eventually("the messages are gone", func() bool {
			var left v1beta1.ChatMessageList
			check.OK(t, from.Client.List(t.Context(), &left, client.InNamespace(from.ns)))
			return len(left.Items) == 0
		})
		from.kubectl("delete", "toolapprovals", "--all")
		checkRestore(t, model, from, before, file)
	})
}

func TestFolderOfObjectsIsRestored(t *testing.T) {
	from := newFamily(t)
	before := from.views()
	var list struct{ Items []json.RawMessage }
	check.OK(t, json.Unmarshal([]byte(from.kubectl("get", kinds, "-o", "json")), &list))
	dir := t.TempDir()
	for i, item := range list.Items { // Velero has each object twice.
		for _, folder := range []string{"chats.parley.dev", "chats.parley.dev/v1beta1-preferredversion"} {
			check.OK(t, os.MkdirAll(filepath.Join(dir, folder), 0o700))
			check.OK(t, os.WriteFile(filepath.Join(dir, folder, strconv.Itoa(i)+".json"), item, 0o600))
		}
	}
	check.OK(t, os.WriteFile(filepath.Join(dir, "version"), []byte("1.1.0"), 0o600))
	to := newRoom(t, target)
	out, code := to.chat("restorer", "restore", "-f", dir, "-n", to.ns, "--dry-run", "sub")
	if code != 0 {
		t.Fatalf("the dry run ended with %d: %s", code, out)
	}
	check.Equal(t, "result", "Chat root in namespace "+to.ns+" restored, with 2 messages (dry run)\n"+
		"Chat sub in namespace "+to.ns+" restored, with 7 messages (dry run)\n", out)
	check.Equal(t, "chats", 0, len(to.views()))
	out, code = to.chat("restorer", "restore", "-f", dir, "-n", to.ns)
	if code != 0 {
		t.Fatalf("the restore ended with %d: %s", code, out)
	}
	to.awaitRestored("root", "sub")
	check.Equal(t, "chats", before, to.views())
}

func TestRestoreSaysWhatIsMissing(t *testing.T) {
	from := newFamily(t)
	to := newRoom(t, target)
	file := filepath.Join(t.TempDir(), "backup.yaml")
	check.OK(t, os.WriteFile(file, []byte(from.kubectl("get", kinds, "-o", "yaml")), 0o600))
	for _, c := range []struct {
		who  string
		args []string
		want string
		code int
	}{
		{"restorer", []string{"restore"}, "name the backup with -f", 2},
		{"restorer", []string{"restore", "-f", file + ".old"}, "no such file", 1},
		{"restorer", []string{"restore", "-f", file, "another"}, "the backup has no chat another", 1},
		{"alice", []string{"restore", "-f", file}, "ask for the ClusterRole parley-restore", 1},
	} {
		out, code := to.chat(c.who, append(c.args, "-n", to.ns)...)
		check.Equal(t, "exit code", c.code, code)
		check.Contains(t, out, c.want)
	}
}

// checkRestore restores the backup of a scene into the room, compares what people see, and continues each chat.
func checkRestore(t *testing.T, model *modelserver.Server, to *room, before map[string]view, file string) {
	asked := len(model.Requests())
	out, code := to.chat("restorer", "restore", "-f", file, "-n", to.ns)
	if code != 0 {
		t.Fatalf("the restore ended with %d: %s", code, out)
	}
	check.Contains(t, out, "Chat root in namespace "+to.ns+" restored, with 2 messages")
	to.awaitMessage("flight-prompt", v1beta1.ReasonAnswered)
	for name := range before {
		to.eventually("the operator has chat "+name, func() bool {
			return reasonOf(to.get(name).Status.Conditions, 1) != string(v1beta1.ReasonRestoring)
		})
	}
	check.Equal(t, "requests of models", 1, len(model.Requests())-asked) // Of the turn that was under way.
	now := to.views()
	check.Equal(t, "length of chat flight", 2, now["flight"].History.Length)
	delete(now, "flight")
	for name, want := range before {
		if name != "flight" {
			check.Equal(t, name, want, now[name])
		}
	}
	again, code := to.chat("restorer", "restore", "-f", file, "-n", to.ns)
	if code != 0 || strings.Contains(again, "restored") {
		t.Errorf("a second restore ended with %d: %s", code, again)
	}
	continueAll(to)
}

// continueAll continues each chat of a scene.
func continueAll(r *room) {
	r.t.Helper()
	r.patch(chattest.Chat("archived"), `{"spec":{"archived":false}}`)
	for _, chat := range append(atRest, "archived", "flight") {
		r.say(chat, chat+"-more", "more")
	}
	r.approves("waits")
	for _, name := range []string{"waits-prompt", "waits-1"} {
		r.awaitMessage(name, v1beta1.ReasonAnswered)
	}
	call := r.get("client").Status.RequiresAction.ToolCalls[0]
	r.create(chattest.Brings("client", "client-result",
		v1beta1.ToolResult{ID: call.ID, Name: call.Name, Output: `"dark"`}))
	r.awaitMessage("client-prompt", v1beta1.ReasonAnswered)
	var config v1beta1.ChatModelConfig
	check.OK(r.t, r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: r.ns, Name: "default"}, &config))
	r.create(&v1beta1.ChatModelConfig{ObjectMeta: chattest.Config("absent").ObjectMeta, Spec: v1beta1.ChatModelConfigSpec{
		Provider: config.Spec.Provider, Model: config.Spec.Model, BaseURL: config.Spec.BaseURL}})
	r.awaitMessage("pending-prompt", v1beta1.ReasonAnswered)
}

// view is what people see of a chat.
type view struct {
	Reason, Title string
	History       v1beta1.HistoryStatus
	Usage         v1beta1.TokenUsage
	Cost          []v1beta1.Cost
	Queue         []v1beta1.QueuedMessage
	Calls         []string
	Author        string
	// Messages are those of the export, and States those of the messages of people.
	Messages []map[string]any
	States   map[string]string
}

// views are all chats of the room.
func (r *room) views() map[string]view {
	r.t.Helper()
	var chats v1beta1.ChatList
	check.OK(r.t, r.Client.List(r.t.Context(), &chats, client.InNamespace(r.ns)))
	views := map[string]view{}
	for i := range chats.Items {
		views[chats.Items[i].Name] = r.view(&chats.Items[i])
	}
	return views
}

func (r *room) view(chat *v1beta1.Chat) view {
	r.t.Helper()
	st := &chat.Status
	v := view{Reason: reasonOf(st.Conditions, chat.Generation), Title: st.Title, History: st.History, Usage: st.Usage,
		Cost: st.Cost, Queue: st.Queue, States: map[string]string{},
		Author: chat.Annotations[v1beta1.AnnotationCreatedBy]}
	if st.RequiresAction != nil {
		for _, call := range st.RequiresAction.ToolCalls {
			v.Calls = append(v.Calls, call.ID+" "+call.Digest)
		}
	}
	out, code := r.chat("alice", "export", chat.Name, "-o", "jsonl", "-n", r.ns)
	if code != 0 {
		r.t.Fatalf("exporting chat %s: %s", chat.Name, out)
	}
	for line := range strings.Lines(out) {
		var entry map[string]any
		check.OK(r.t, json.Unmarshal([]byte(line), &entry))
		for _, varies := range []string{"uid", "namespace", "createdAt"} {
			delete(entry, varies)
		}
		v.Messages = append(v.Messages, entry)
	}
	var messages v1beta1.ChatMessageList
	check.OK(r.t, r.Client.List(r.t.Context(), &messages, client.InNamespace(r.ns),
		client.MatchingFields{"spec.chatRef.name": chat.Name}))
	for i := range messages.Items {
		m := &messages.Items[i]
		v.States[m.Name] = string(m.Status.State) + " " + reasonOf(m.Status.Conditions, m.Generation)
	}
	return v
}
