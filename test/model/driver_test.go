// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/model/reference"
)

// driver does to a real chat what operations say.
type driver struct {
	chat types.NamespacedName
	// sub does to the sub-chat what operations say; nil if there is none.
	sub *driver
	// peers do so to the other chats of the namespace, by the names that operations give them.
	peers map[string]*driver
	// quotas of the namespace.
	quotas map[string]reference.Counts
	// written are the versions that this driver's own writes made: what it looks at must not be older.
	written map[string]uint64
	// refers is what the chat says while what it names is missing; empty if it names nothing.
	refers v1beta1.ErrorReason
	// hasBudget is true while the chat has a budget.
	hasBudget bool
	// edits counts them, so that each says something new.
	edits int
	// newerThan is a version of the history that the chat must have left behind; -1: none.
	newerThan int64
	// answered is the newest attempt that has an answer, open every attempt that had none when it was last looked.
	answered fence
	open     []v1beta1.Chat
}

// fence tells attempts apart.
type fence struct {
	version int64
	attempt int32
}

func fenceOf(chat *v1beta1.Chat) fence {
	return fence{chat.Status.History.Version, chat.Status.Generation.Attempt}
}

func newDriver(namespace, name string) *driver {
	return &driver{chat: types.NamespacedName{Namespace: namespace, Name: name}, written: map[string]uint64{},
		peers: map[string]*driver{}, quotas: map[string]reference.Counts{}, newerThan: -1}
}

// key is the name of an operation's object without the chat's, and back.
func (d *driver) name(key string) string { return d.chat.Name + "-" + key }

func (d *driver) key(name string) string { return strings.TrimPrefix(name, d.chat.Name+"-") }

func (d *driver) bareChat() *v1beta1.Chat {
	return chattest.In(d.chat.Namespace, chattest.Chat(d.chat.Name))
}

func (d *driver) message(key string) *v1beta1.ChatMessage {
	return chattest.In(d.chat.Namespace, chattest.User(d.chat.Name, d.name(key)))
}

func (d *driver) wrote(o client.Object) { d.written[id(o)] = version(o) }

func (d *driver) create(ctx context.Context, o client.Object) error {
	if err := cluster.Client.Create(ctx, o); err != nil {
		return fmt.Errorf("creating %s: %w", id(o), err)
	}
	d.wrote(o)
	return nil
}

func (d *driver) patch(ctx context.Context, o client.Object, format string, args ...any) error {
	if err := cluster.Client.Patch(ctx, o,
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))); err != nil {
		return fmt.Errorf("patching %s: %w", id(o), err)
	}
	d.wrote(o)
	return nil
}

// begin creates the chat.
func (d *driver) begin(ctx context.Context, o operation) error {
	limits := limitsOf(o)
	chat := d.bareChat()
	chat.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(limits.MaxQueue)), MaxSteps: new(int32(limits.MaxSteps))}
	if limits.Impatient {
		chat.Spec.Limits.ActionDeadlineSeconds = new(int32(1))
	}
	if limits.StopsAfterClient {
		chat.Spec.Tools = &v1beta1.ChatTools{StopAfter: []string{"client"}}
	}
	// No call needs it, so that there never is one.
	chat.Spec.Workspace = &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "any"}}
	chat.Spec.Suspend = slices.Contains(o.args, "suspended")
	if slices.Contains(o.args, "prompt") {
		chat.Spec.Prompt = "hello"
	}
	d.referTo(chat, o)
	return d.create(ctx, chat)
}

// anew deletes the chat and creates another one of its name at once. Messages that do not say yet that they are the old
// one's would be the new one's.
func (d *driver) anew(ctx context.Context, o operation) error {
	for now := watched.get(d.chat); !allTaken(now); now = watched.get(d.chat) {
		select {
		case <-now.changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting until all messages name their chat: %w", ctx.Err())
		}
	}
	if err := cluster.Client.Delete(ctx, d.bareChat()); err != nil {
		return fmt.Errorf("deleting the chat: %w", err)
	}
	other := newDriver(d.chat.Namespace, d.chat.Name)
	other.peers, other.quotas = d.peers, d.quotas
	*d = *other
	return d.begin(ctx, o)
}

// allTaken reports whether each message of people says which chat it is of.
func allTaken(o objects) bool {
	for _, m := range o.messages {
		if m.Spec.Generation == nil && m.Status.ChatUID == "" {
			return false
		}
	}
	return true
}

func (d *driver) send(ctx context.Context, key string, whenBusy v1beta1.WhenBusy) error {
	m := d.message(key)
	m.Spec.WhenBusy = whenBusy
	return d.create(ctx, m)
}

func (d *driver) edit(ctx context.Context, key string) error {
	d.edits++
	return d.patch(ctx, d.message(key), `{"spec":{"content":"hello again %d"}}`, d.edits)
}

// delete deletes a message: a person's by its name, a generated one by its label.
func (d *driver) delete(ctx context.Context, key string) error {
	m := d.message(key)
	for _, there := range watched.get(d.chat).messages {
		if there.Labels[labelKey] == key {
			m = there.DeepCopy()
		}
	}
	if err := cluster.Client.Delete(ctx, m); err != nil {
		return fmt.Errorf("deleting %s: %w", id(m), err)
	}
	return nil
}

// annotate makes a request. The same annotation with another value is another one.
func (d *driver) annotate(ctx context.Context, annotation, token string) error {
	return d.patch(ctx, d.bareChat(), `{"metadata":{"annotations":{%q:%q}}}`, annotation, token)
}

// reapply writes every object of people as it is.
func (d *driver) reapply(ctx context.Context) error {
	o := watched.get(d.chat)
	again := []client.Object{o.chat}
	for _, m := range o.messages {
		if m.Spec.Generation == nil {
			again = append(again, m)
		}
	}
	for _, object := range again {
		object, ok := object.DeepCopyObject().(client.Object)
		if !ok {
			continue
		}
		object.SetResourceVersion("") // What is applied carries none, and no status counts.
		if err := cluster.Client.Patch(ctx, object, client.Merge); err != nil {
			return fmt.Errorf("applying %s again: %w", id(object), err)
		}
	}
	return nil
}

func (d *driver) bring(ctx context.Context, key string, results []reference.Result) error {
	brought := make([]v1beta1.ToolResult, len(results))
	for i, result := range results {
		brought[i] = v1beta1.ToolResult{ID: result.ID, Output: `{"number":1}`, IsError: result.Failed}
		if result.Malformed {
			brought[i].Output = `{"number":`
		}
	}
	return d.create(ctx, chattest.In(d.chat.Namespace, chattest.Brings(d.chat.Name, d.name(key), brought...)))
}

func (d *driver) decide(ctx context.Context, key, id string, decision v1beta1.ApprovalDecision) error {
	call := approval.Of(toolCall(id, "approval"))
	return d.create(ctx, chattest.In(d.chat.Namespace, chattest.DecidesOf(d.chat.Name, d.name(key), call, decision)))
}
