// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

const (
	// previewRunes is how many characters of a queued message are shown.
	previewRunes = 100
	// queuePatience is how long the queue waits for the previews of its messages.
	queuePatience = 2 * time.Second
	// maxEncodings and maxEncoding, in bytes, bound the encodings that are kept: 4 MiB. All followers of a chat get a
	// change within moments.
	maxEncodings = 256
	maxEncoding  = 16 << 10
)

// Queue looks up messages that are not committed yet.
type Queue interface {
	// Look is what clients see of a queued message. It fails with ErrMissing, or with a temporary error.
	Look(ctx context.Context, chat *v1beta1.Chat, name string) (stream.QueuedMessage, error)
}

// present sends how the chat is now: the queue, the status, the error, the retry and the required action.
type present struct {
	queue     Queue // nil: only the names of queued messages are sent
	encodings *Encodings
	out       outlet
	// needsID is whether the next status has an id. A stream without earlier messages may have no other id for long.
	needsID bool

	queued     []stream.QueuedMessage // as it was sent; nil if it was not
	incomplete bool                   // whether the queue was sent without a preview that should be known
	sent       map[string]any         // the state for which each event was sent, by its name
}

// forget makes the next call of send complete.
func (p *present) forget() { p.queued, p.incomplete, p.sent = nil, false, nil }

// send sends what the client does not have.
func (p *present) send(ctx context.Context, chat *v1beta1.Chat) error {
	if err := p.sendQueue(ctx, chat); err != nil {
		return err
	}
	status, version := statusOf(chat), chat.Status.History.Version
	if err := p.sendOnce(chat, stream.EventStatus, status, status); err != nil {
		return err
	}
	if chat.Status.LastError != nil {
		if err := p.sendOnce(chat, stream.EventError, version, errorOf(chat)); err != nil {
			return err
		}
	}
	if retry := chat.Status.Retry; retry != nil {
		if err := p.sendOnce(chat, stream.EventRetry, [2]int64{version, int64(retry.Attempt)}, retryOf(chat)); err != nil {
			return err
		}
	}
	if chat.Status.RequiresAction != nil {
		action := actionOf(chat)
		return p.sendOnce(chat, stream.EventRequiresAction, action, action)
	}
	return nil
}

// sendOnce sends an event that follows from the chat alone, unless it was sent for the same state.
func (p *present) sendOnce(chat *v1beta1.Chat, name string, state, data any) error {
	if reflect.DeepEqual(p.sent[name], state) {
		return nil
	}
	event, err := p.encodings.event(chat, name, data)
	if err != nil {
		return err
	}
	if p.needsID && name == stream.EventStatus {
		event.ID, p.needsID = behind(chat, chat.Status.History.Length).String(), false
	}
	if err := p.out(event); err != nil {
		return err
	}
	if p.sent == nil {
		p.sent = map[string]any{}
	}
	p.sent[name] = state
	return nil
}

// sendQueue sends the queue if it has changed. A preview that cannot be read in time follows later.
func (p *present) sendQueue(ctx context.Context, chat *v1beta1.Chat) error {
	isSame := func(sent stream.QueuedMessage, q v1beta1.QueuedMessage) bool {
		return sent.Name == q.Name && sent.Interrupts == q.Interrupts && sent.HeldUntil.Equal(q.HeldUntil)
	}
	if p.queued != nil && !p.incomplete && slices.EqualFunc(p.queued, chat.Status.Queue, isSame) {
		return nil
	}
	queue, whole := p.look(ctx, chat)
	if p.queued == nil || !reflect.DeepEqual(queue, p.queued) {
		if err := p.out.send(stream.EventQueueUpdate, stream.QueueUpdate{Queue: queue}); err != nil {
			return err
		}
	}
	p.queued, p.incomplete = queue, !whole
	return nil
}

// look is the queue with what is known of its messages. It reports whether that is all that can be.
func (p *present) look(ctx context.Context, chat *v1beta1.Chat) (queue []stream.QueuedMessage, whole bool) {
	looking, cancel := context.WithTimeout(ctx, queuePatience)
	defer cancel()
	queue, whole = make([]stream.QueuedMessage, 0, len(chat.Status.Queue)), true
	for _, q := range chat.Status.Queue {
		seen := stream.QueuedMessage{Name: q.Name}
		known := slices.IndexFunc(p.queued, func(s stream.QueuedMessage) bool {
			edited := s.HeldUntil != nil && q.HeldUntil == nil // Its preview may be another one.
			return s.Name == q.Name && s.CreatedAt != nil && !edited
		})
		if known >= 0 {
			seen = p.queued[known]
		} else if p.queue != nil {
			found, err := p.queue.Look(looking, chat, q.Name)
			switch {
			case err == nil:
				seen = found
			case !errors.Is(err, ErrMissing):
				whole = false
			}
		}
		seen.Interrupts, seen.HeldUntil = q.Interrupts, q.HeldUntil
		queue = append(queue, seen)
	}
	return queue, whole
}

// Queued is what clients see of a queued message. It fails with ErrMissing for a message of another chat.
func Queued(chat *v1beta1.Chat, msg *v1beta1.ChatMessage) (stream.QueuedMessage, error) {
	if msg.Spec.ChatRef.Name != chat.Name || msg.Spec.Generation != nil {
		return stream.QueuedMessage{}, ErrMissing
	}
	q := stream.QueuedMessage{Name: msg.Name, Preview: previewOf(msg), WhenBusy: msg.Spec.WhenBusy,
		CreatedAt: &msg.CreationTimestamp}
	if ref := msg.Spec.ModelConfigRef; ref != nil {
		q.Model = ref.Name
	}
	return q, nil
}

// previewOf is the first line of a message that people may see.
func previewOf(msg *v1beta1.ChatMessage) string {
	if msg.Spec.Visibility == v1beta1.VisibleToModel {
		return ""
	}
	if msg.Spec.Content != "" {
		return line(msg.Spec.Content)
	}
	texts := []string{}
	for _, part := range msg.Spec.Parts {
		if part.Text != nil {
			texts = append(texts, *part.Text)
		}
	}
	for i := range msg.Spec.History {
		texts = append(texts, msg.Spec.History[i].Content)
	}
	for _, text := range texts {
		if preview := line(text); preview != "" {
			return preview
		}
	}
	return ""
}

// line is the beginning of a text in one line that is safe to show.
func line(text string) string {
	begin := clip.Bytes(text, 8*previewRunes)
	clean := printable.Line(begin)
	if len(begin) < len(text) {
		clean += "…"
	}
	return clip.Ellipsis(clean, previewRunes)
}

func statusOf(chat *v1beta1.Chat) stream.Status {
	s := stream.Status{
		Phase:          chat.Status.Phase,
		HistoryVersion: chat.Status.History.Version,
		Length:         chat.Status.History.Length,
		Model:          chat.Status.Model,
		Mode:           chat.EffectiveMode(),
		ContextStart:   chat.Status.History.ContextStart,
		Wait:           chat.Status.Wait,
		Root:           chat.Status.Root,
	}
	if chat.Spec.ParentRef != nil {
		s.Parent = chat.Spec.ParentRef.Name
	}
	for _, c := range chat.Status.Conditions {
		switch {
		case c.Type == v1beta1.ConditionReady:
			s.Ready, s.Reason, s.Message = c.Status, c.Reason, c.Message
		case c.Type != v1beta1.ConditionReconciling && c.Type != v1beta1.ConditionStalled &&
			c.Status == metav1.ConditionTrue:
			s.Warnings = append(s.Warnings, stream.Warning{Type: c.Type, Reason: c.Reason, Message: c.Message})
		}
	}
	if g := chat.Status.Generation; g != nil {
		s.Attempt, s.Action, s.Pod = g.Attempt, g.Action, g.Pod
	}
	if t := chat.Status.Turn; t != nil {
		s.Turn, s.Result, s.CallsCanceledReason = t.Message, t.Result, t.CallsCanceledReason
	}
	return s
}

func retryOf(chat *v1beta1.Chat) stream.Retry {
	r := chat.Status.Retry
	retry := stream.Retry{
		HistoryVersion: chat.Status.History.Version, Attempt: r.Attempt, Action: r.Action, At: r.At,
		Reason: r.Reason, Message: r.Message,
		Provider: r.Provider, StatusCode: r.StatusCode, ModelConfig: r.ModelConfig,
	}
	if !r.FailedAt.IsZero() {
		retry.DelayMS = max(0, r.At.Sub(r.FailedAt.Time).Milliseconds())
	}
	return retry
}

func errorOf(chat *v1beta1.Chat) stream.Error {
	e := chat.Status.LastError
	return stream.Error{
		HistoryVersion: chat.Status.History.Version,
		Reason:         e.Reason, Message: e.Message, Advice: e.Advice, Provider: e.Provider, StatusCode: e.StatusCode,
		Action: e.Action, Retryable: e.Retryable,
	}
}

func actionOf(chat *v1beta1.Chat) stream.RequiresAction {
	required := chat.Status.RequiresAction
	return stream.RequiresAction{HistoryVersion: chat.Status.History.Version, Deadline: required.Deadline,
		Message: required.Message, ToolCalls: required.ToolCalls}
}

// Encodings keeps events that follow from a chat alone, so that each is encoded once for all followers of the chat. It
// is safe for concurrent use.
type Encodings struct{ known *lru.Cache }

// NewEncodings returns empty Encodings.
func NewEncodings() *Encodings { return &Encodings{known: lru.New(maxEncodings)} }

// encoding identifies an event: its name, and a version of an object.
type encoding struct {
	name    string
	uid     types.UID
	version string
}

// event returns the event of a name. Nil Encodings encode each one again.
func (e *Encodings) event(chat *v1beta1.Chat, name string, data any) (stream.Event, error) {
	if e == nil || chat.ResourceVersion == "" {
		return stream.New(name, "", data)
	}
	key := encoding{name, chat.UID, chat.ResourceVersion}
	if known, ok := e.known.Get(key); ok {
		return known.(stream.Event), nil
	}
	event, err := stream.New(name, "", data)
	if err == nil && len(event.Data) <= maxEncoding {
		e.known.Add(key, event)
	}
	return event, err
}
