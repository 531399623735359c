// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/fantasy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

const name = "c-7-generateassistant"

var finished = finish.Mark(fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish,
	Usage: fantasy.Usage{InputTokens: 3, OutputTokens: 4}}, finish.Last{Reason: "stop"})

func delta(text string) fantasy.StreamPart {
	return fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, ID: "0", Delta: text}
}

// outline is a recording in one line.
func outline(step *v1beta1.DebugRecording) string {
	line := string(step.State)
	if step.Error != nil {
		line += " " + string(step.Error.Reason)
	}
	if step.Response != nil {
		for _, part := range step.Response.Parts {
			line += " " + part.Text
		}
		line += "; " + step.Response.FinishReason
	}
	if step.Cost != nil {
		line += fmt.Sprintf("; %d %s", step.Cost.MicroUnits, step.Cost.Currency)
	}
	return line
}

func TestCallIsRecordedAsItEnded(t *testing.T) {
	for want, m := range map[string]*model{
		"Completed Hello; stop; 8 USD": {parts: []fantasy.StreamPart{delta("He"), delta("llo"), finished}},
		"Error ProviderError":          {err: errors.New("no: " + key)},
		"Error InternalError":          {do: func(context.Context) { panic("a fault") }},
		"Error ProviderError; content_filter; 2000 USD": {parts: []fantasy.StreamPart{{
			Type:  fantasy.StreamPartTypeError,
			Error: &finish.Error{Outcome: v1beta1.ReplyFiltered, Reason: "content_filter"},
			Usage: fantasy.Usage{OutputTokens: 1000}}}},
	} {
		t.Run(want, func(t *testing.T) {
			s := newSession(t)
			s.config.Spec.Pricing = &v1beta1.Pricing{Currency: "USD", InputPerMillion: "0", OutputPerMillion: "2"}
			call := s.callOf(m, fantasy.Call{})
			func() {
				defer func() { _ = recover() }()
				s.caller().Call(t.Context(), call)
			}()
			s.flush()
			check.Equal(t, "the recording", want, outline(s.step(name)))
		})
	}
}

func TestEveryCallIsAStepOfItsOwn(t *testing.T) {
	s := newSession(t)
	s.attempt(&model{parts: []fantasy.StreamPart{delta("Hello"), finished}}, fantasy.Call{}, fantasy.Call{})
	first, second := s.step(name), s.step(name+"-2")
	check.Equal(t, "call, steps", []any{1, 2, 2}, []any{first.Call, second.Call, len(s.store.steps)})
}

func TestAnEndedCallIsRecordedWithItsCause(t *testing.T) {
	movedOn := errors.New("the chat has moved on")
	for cause, want := range map[error]struct {
		outcome v1beta1.GenerationOutcome
		state   v1beta1.DebugState
	}{
		nil:                      {v1beta1.OutcomeFailed, v1beta1.DebugError},
		models.ErrSilent:         {v1beta1.OutcomeFailed, v1beta1.DebugError},
		context.DeadlineExceeded: {v1beta1.OutcomeFailed, v1beta1.DebugError},
		tools.ErrInterrupted:     {v1beta1.OutcomeInterrupted, v1beta1.DebugInterrupted},
		movedOn:                  {telemetry.OutcomeAbandoned, v1beta1.DebugInterrupted},
	} {
		s := newSession(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		broken := fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: errors.New("no more")}
		call := s.callOf(&model{parts: []fantasy.StreamPart{delta("He"), broken}, do: func(context.Context) {
			if cause != nil {
				cancel(cause)
			}
		}}, fantasy.Call{})
		s.caller().Call(ctx, call)
		cancel(nil)
		s.flush()
		step := s.step(name)
		check.Equal(t, fmt.Sprint(cause), []any{want.outcome, want.state, "He", want.state == v1beta1.DebugError},
			[]any{call.Outcome, step.State, step.Response.Parts[0].Text, step.Error != nil})
	}
}

func TestNoJSONOfALongReplyIsCut(t *testing.T) {
	s := newSession(t)
	secret := `{"password":"hunter2","text":"` + strings.Repeat("x", 60000) + `"}`
	s.attempt(&model{parts: []fantasy.StreamPart{
		{Type: fantasy.StreamPartTypeTextDelta, ID: "0", Delta: strings.Repeat("y", 20000)},
		{Type: fantasy.StreamPartTypeToolCall, ID: "call", ToolCallName: "login", ToolCallInput: secret},
		{Type: fantasy.StreamPartTypeTextDelta, ID: "1", Delta: "more"},
		finished,
	}}, fantasy.Call{})
	parts := s.step(name).Response.Parts
	check.Equal(t, "the texts", []any{3, 20000, "[left out: too long]", " [cut]"},
		[]any{len(parts), len(parts[0].Text), parts[1].Text, parts[2].Text})
}

// meanwhile does something within a call that has nothing to do with it.
func meanwhile(do func()) func(context.Context) { return func(context.Context) { do() } }

// exchange lets a call make one HTTP request.
func exchange(w *wire, body io.Reader) func(context.Context) {
	return func(ctx context.Context) {
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://user:pass@models.test/v1?key="+key, body)
		request.Header.Set("X-Sent", key)
		response, err := observe.RecordExchanges(&http.Client{Transport: w}).Do(request)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
}

func TestRecordingLeavesBodiesWhole(t *testing.T) {
	small, large := `{"token":"h","a":"`+key+`"}`, `{"a":"`+strings.Repeat("x", 60000)+`"}`
	events := strings.Repeat("data: {\"a\":1}\n\n", 5000)
	for what, c := range map[string]struct {
		sent     io.Reader
		want     string
		answered string
		recorded string
	}{
		"JSON":      {strings.NewReader(small), small, small, `{"token":"[redacted]","a":"[redacted]"}`},
		"events":    {strings.NewReader(small), small, events, "data: {"},
		"too large": {strings.NewReader(large), large, large, "[left out: 60008 bytes that are more than 50000]"},
		"a page":    {strings.NewReader(large), large, "<html>", "[left out: 6 bytes that are not JSON]"},
	} {
		t.Run(what, func(t *testing.T) {
			s, w := newSession(t), &wire{body: strings.NewReader(c.answered)}
			s.attempt(&model{parts: []fantasy.StreamPart{finished}, do: exchange(w, c.sent)}, fantasy.Call{})
			check.Equal(t, "what is sent", c.want, string(w.sent))
			e := s.step(name).Attempts[0].Exchanges[0]
			check.Equal(t, "beginning, len, url", []any{true, false, "http://models.test/v1?key=[redacted]"},
				[]any{strings.HasPrefix(e.ResponseBody, c.recorded), len(e.ResponseBody) > 51000, e.URL})
			want := `{"token":"[redacted]","a":"[redacted]"}`
			if c.want == large {
				want = "[left out: 60008 bytes that are more than 50000]"
			}
			check.Equal(t, "the request", want, e.RequestBody)
		})
	}
}

func TestARecordingFitsWhateverWasSaid(t *testing.T) {
	s := newSession(t)
	// What JSON writes in its longest form.
	text := strings.Repeat("\x01é\xff<", 6000)
	call := fantasy.Call{}
	for range 600 {
		message := fantasy.Message{Role: fantasy.MessageRoleUser}
		for range 70 {
			message.Content = append(message.Content, fantasy.TextPart{Text: text[:3000]})
		}
		call.Prompt = append(call.Prompt, message)
	}
	call.Prompt = append(call.Prompt, fantasy.NewUserMessage(text))
	for i := range 200 {
		call.Tools = append(call.Tools, fantasy.FunctionTool{Name: fmt.Sprint(i, text[:500]), Description: text[:3000],
			InputSchema: map[string]any{"type": text[:30000]}})
	}
	parts := []fantasy.StreamPart{{Type: fantasy.StreamPartTypeWarnings,
		Warnings: slices.Repeat([]fantasy.CallWarning{{Message: text}}, 50)}}
	for i := range 300 {
		parts = append(parts, fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, ID: fmt.Sprint(i),
			Delta: text[:1000]})
	}
	body := `{"a":"` + strings.Repeat(`\u0001`, 8000) + `"}`
	for attempt := range int32(36) {
		s.chat.Status.Generation.Attempt = attempt + 1
		asked := fantasy.Call{}
		if attempt > 33 {
			asked = call
		}
		s.attempt(&model{parts: append(parts, finished), do: func(ctx context.Context) {
			for range 10 {
				exchange(&wire{body: strings.NewReader(body)}, strings.NewReader(body))(ctx)
			}
		}}, asked)
	}
	step := s.step(name)
	check.Equal(t, "attempts, last, state, response, log", []any{true, 36, v1beta1.DebugCompleted, true, ""},
		[]any{len(step.Attempts) <= 32, step.Attempts[len(step.Attempts)-1].Number, step.State, step.Response != nil,
			s.log.String()})
}

// chats is how many chats a pod serves in these tests.
const chats = 100

// crowd begins and ends a recorded call of so many chats before anything can be written.
func (s *session) crowd(n int) {
	for i := range n {
		chat := s.chat.DeepCopy()
		chat.Name = fmt.Sprintf("c%d", i)
		s.observer.SideCaller(chat, v1beta1.ActionGenerateAssistant, "").Call(s.t.Context(),
			s.callOf(&model{parts: []fantasy.StreamPart{delta("secret words"), finished}}, fantasy.Call{}))
	}
}

func TestManyChatsLoseNoRecording(t *testing.T) {
	s := newSession(t)
	for range 3 { // A title, a reply and what follows its tools may all wait.
		s.crowd(chats)
		s.chat.Status.History.Version++
	}
	s.flush()
	check.Equal(t, "steps, log, lost", []any{3 * chats, 0, 0}, []any{len(s.store.steps), s.log.Len(), len(s.lost())})
	for name, step := range s.store.steps {
		check.Equal(t, name, v1beta1.DebugCompleted, step.State)
	}
}

func TestAFullQueueLosesRecordingsAndNothingElse(t *testing.T) {
	s := newSession(t)
	s.crowd(5 * chats)
	check.Contains(t, s.log.String(), "QueueFull")
	check.Lacks(t, s.log.String(), "secret words")
	s.flush()
	check.Equal(t, "recorded, lost", []any{4 * chats, map[string]int{"QueueFull": 2 * chats}},
		[]any{len(s.store.steps), s.lost()})
}

func TestRecordingNamesItsTurnAndMessage(t *testing.T) {
	s := newSession(t)
	s.chat.Status.Turn = &v1beta1.TurnStatus{Message: "c-prompt", HistoryVersion: 5}
	s.chat.Status.History.Head, s.chat.Status.History.Length = "c-6-1", 4
	s.config.Spec.Pricing = &v1beta1.Pricing{Currency: "USD", InputPerMillion: "0", OutputPerMillion: "2"}
	var begun *v1beta1.ChatDebugStep
	s.attempt(&model{parts: []fantasy.StreamPart{{Type: fantasy.StreamPartTypeFinish,
		Usage: fantasy.Usage{OutputTokens: 1000}}}, do: meanwhile(func() {
		s.flush()
		begun = s.store.steps[name]
	})}, fantasy.Call{})
	check.Contains(t, begun.Annotations[v1beta1.AnnotationInProgress], "pod 1 20")
	step := s.store.steps[name]
	check.Equal(t, "the turn", &v1beta1.DebugTurn{Message: "c-prompt", Version: 5, CreatedBy: "alice"}, step.Turn)
	check.Equal(t, "the head", "c-6-1", step.Head)
	check.Equal(t, "the cost", &v1beta1.Cost{Currency: "USD", MicroUnits: 2000}, step.Cost)
	_, still := step.Annotations[v1beta1.AnnotationInProgress]
	check.Equal(t, "annotated", []any{false, "7/4"}, []any{still, step.Annotations[v1beta1.AnnotationHistory]})
}

func TestCallsAreRecordedWhereChatOrModelAsks(t *testing.T) {
	on, off := &v1beta1.DebugSettings{Enabled: true}, &v1beta1.DebugSettings{}
	for name, c := range map[string]struct {
		chat, config *v1beta1.DebugSettings
		switchedOff  bool
		want         int
	}{
		"nobody asks": {}, "the chat does not": {chat: off}, "the chat asks": {chat: on, want: 1},
		"the configuration asks": {config: on, want: 1}, "it asks, and the chat does not": {chat: off, config: on, want: 1},
		"it is switched off": {chat: on, config: on, switchedOff: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t)
			if s.chat.Spec.Debug, s.config.Spec.Debug = c.chat, c.config; c.switchedOff {
				s.observer = observe.New(observe.Options{Tracer: tracing.Off(), Now: time.Now})
			}
			s.attempt(&model{parts: []fantasy.StreamPart{finished}, do: exchange(&wire{body: strings.NewReader("{}")},
				strings.NewReader("{}"))}, fantasy.Call{})
			check.Equal(t, "recordings and log", []any{c.want, ""}, []any{len(s.store.steps), s.log.String()})
		})
	}
}

func TestRefusingNamespaceIsAskedOnceAMinute(t *testing.T) {
	s := newSession(t)
	asked := 0
	s.store.fail = func() error {
		asked++
		return apierrors.NewForbidden(resource, name, errors.New("recordings of model calls are disabled"))
	}
	for range 5 {
		s.crowd(3)
		s.flush()
		s.now = s.now.Add(20 * time.Second)
	}
	// The writes are those of the three calls that began before the answer came, twice.
	check.Equal(t, "writes, lost", []any{6, map[string]int{"Forbidden": 15}}, []any{asked, s.lost()})
}

func TestARecordingThatWasDeletedMeanwhileStaysAway(t *testing.T) {
	s := newSession(t)
	s.attempt(&model{parts: []fantasy.StreamPart{delta("words"), finished}, do: meanwhile(func() {
		s.flush()
		delete(s.store.steps, name)
	})}, fantasy.Call{})
	check.Equal(t, "steps, log", []any{0, 0}, []any{len(s.store.steps), s.log.Len()})
}

func TestWritesThatMeetOthersAreMadeAgain(t *testing.T) {
	s := newSession(t)
	faults := []error{apierrors.NewAlreadyExists(resource, name), apierrors.NewConflict(resource, name, nil)}
	s.store.fail = func() (err error) {
		if len(faults) > 0 {
			err, faults = faults[0], faults[1:]
		}
		return err
	}
	s.attempt(&model{parts: []fantasy.StreamPart{finished}}, fantasy.Call{})
	step := s.step(name)
	check.Equal(t, "state, faults, log", []any{v1beta1.DebugCompleted, 0, 0}, []any{step.State, len(faults), s.log.Len()})
}

func TestUnwritableRecordingIsLostSilently(t *testing.T) {
	s := newSession(t)
	s.store.fail = func() error { return apierrors.NewForbidden(resource, name, errors.New("quoting the words")) }
	s.attempt(&model{parts: []fantasy.StreamPart{delta("words"), finished}}, fantasy.Call{})
	check.Contains(t, s.log.String(), "Forbidden")
	check.Lacks(t, s.log.String(), "words")
}

func TestRecordingOfADeletedNamesakeIsLeftAlone(t *testing.T) {
	s := newSession(t)
	answer := &model{parts: []fantasy.StreamPart{finished}}
	s.attempt(answer, fantasy.Call{})
	s.chat = s.chat.DeepCopy()
	s.chat.UID = "another"
	s.attempt(answer, fantasy.Call{})
	check.Equal(t, "the recording's chat", "uid", s.step(name).ChatUID)
	check.Contains(t, s.log.String(), "NameConflict")
}

func TestLateEndOfAnAttemptHidesNoNewer(t *testing.T) {
	s := newSession(t)
	older := s.caller()
	interrupted, interrupt := context.WithCancelCause(t.Context())
	s.chat = s.chat.DeepCopy()
	s.chat.Status.Generation.Attempt = 2
	older.Call(interrupted, s.callOf(&model{do: meanwhile(func() {
		s.attempt(&model{parts: []fantasy.StreamPart{finished}}, fantasy.Call{})
		check.Equal(t, "an attempt that has not ended yet", v1beta1.DebugInterrupted, s.step(name).Attempts[0].State)
		interrupt(tools.ErrInterrupted)
	})}, fantasy.Call{}))
	s.flush()
	step := s.step(name)
	check.Equal(t, "attempt, states", []any{2, v1beta1.DebugCompleted, 2, v1beta1.DebugInterrupted},
		[]any{step.Attempt, step.State, len(step.Attempts), step.Attempts[0].State})
}
