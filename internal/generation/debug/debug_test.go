// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

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

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/debug"
)

const name = "c-7-generateassistant"

var finish = fantasy.StreamPart{Type: fantasy.StreamPartTypeFinish, FinishReason: fantasy.FinishReasonStop,
	Usage: fantasy.Usage{InputTokens: 3, OutputTokens: 4}}

func delta(text string) fantasy.StreamPart {
	return fantasy.StreamPart{Type: fantasy.StreamPartTypeTextDelta, ID: "0", Delta: text}
}

func stream(ctx context.Context, m fantasy.LanguageModel) { read(m.Stream(ctx, fantasy.Call{})) }

func TestACallIsRecorded(t *testing.T) {
	s := newSession(t)
	s.attempt(&model{parts: []fantasy.StreamPart{delta("He"), delta("llo"), finish}}, stream)
	step := s.step(name)
	if step.State != v1alpha1.DebugCompleted || step.Response.Parts[0].Text != "Hello" ||
		step.Response.FinishReason != "stop" {
		t.Errorf("recorded %+v, %+v", step, step.Response)
	}
}

func TestAFailedCallIsRecorded(t *testing.T) {
	s := newSession(t)
	s.attempt(&model{err: errors.New("no: " + key)}, stream)
	if step := s.step(name); step.State != v1alpha1.DebugError || step.Error.Reason != v1alpha1.ErrorProviderError ||
		step.Response != nil {
		t.Errorf("recorded %+v", step)
	}
}

func TestEveryCallOfAnAttemptIsAStepOfItsOwn(t *testing.T) {
	s := newSession(t)
	s.attempt(&model{parts: []fantasy.StreamPart{delta("Hello"), finish}},
		func(ctx context.Context, m fantasy.LanguageModel) {
			read(m.Stream(ctx, fantasy.Call{}))
			read(m.Stream(ctx, fantasy.Call{}))
		})
	if first, second := s.step(name), s.step(name+"-2"); first.Call != 1 || second.Call != 2 || len(s.store.steps) != 2 {
		t.Errorf("recorded %v", s.names())
	}
}

func TestACallThatIsGivenUpEndsAsItsAttempt(t *testing.T) {
	fault := &v1alpha1.GenerationError{Reason: v1alpha1.ErrorProviderUnavailable, Message: "never recorded",
		Retryable: true}
	for status, err := range map[v1alpha1.DebugState]*v1alpha1.GenerationError{v1alpha1.DebugInterrupted: nil,
		v1alpha1.DebugError: fault, v1alpha1.DebugCompleted: nil} {
		s := newSession(t)
		recording := s.recorder.Begin(s.chat, v1alpha1.ActionGenerateAssistant)
		stream, _ := recording.Model(&model{parts: []fantasy.StreamPart{delta("He"), delta("llo"), finish}}, s.subject).
			Stream(t.Context(), fantasy.Call{})
		for range stream {
			break
		}
		recording.End(status, err)
		s.flush()
		if step := s.step(name); step.State != status || step.Response.Parts[0].Text != "He" ||
			(step.Error != nil) != (err != nil) {
			t.Errorf("recorded %+v", step)
		}
	}
}

func TestACallOutsideOfARecordingIsLeftAlone(t *testing.T) {
	s := newSession(t)
	read((*debug.Recording)(nil).Model(&model{parts: []fantasy.StreamPart{finish}}, s.subject).
		Stream(t.Context(), fantasy.Call{}))
	w := &wire{body: strings.NewReader("{}")}
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://models.test", http.NoBody)
	response, err := debug.Client(&http.Client{Transport: w}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	s.flush()
	if len(s.store.steps) != 0 {
		t.Errorf("recorded %v", s.names())
	}
}

// exchange lets a call make one HTTP request.
func exchange(w *wire, body io.Reader) func(context.Context) {
	return func(ctx context.Context) {
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://user:pass@models.test/v1?key="+key, body)
		request.Header.Set("X-Sent", key)
		response, err := debug.Client(&http.Client{Transport: w}).Do(request)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}
}

func TestBodiesReachTheProviderWholeHoweverTheyAreRecorded(t *testing.T) {
	small, large := `{"token":"h","a":"`+key+`"}`, `{"a":"`+strings.Repeat("x", 60000)+`"}`
	events := strings.Repeat("data: {\"a\":1}\n\n", 5000)
	for what, c := range map[string]struct {
		sent     io.Reader
		want     string
		answered string
		recorded string
	}{
		"in memory":      {strings.NewReader(small), small, small, `{"token":"[redacted]","a":"[redacted]"}`},
		"read only once": {io.NopCloser(strings.NewReader(small)), small, events, "data: {"},
		"too large":      {strings.NewReader(large), large, large, "[left out: 60008 bytes that are more than 50000]"},
		"too large, and so": {io.NopCloser(strings.NewReader(large)), large, "<html>",
			"[left out: 6 bytes that are not JSON]"},
	} {
		t.Run(what, func(t *testing.T) {
			s, w := newSession(t), &wire{body: strings.NewReader(c.answered)}
			s.attempt(&model{parts: []fantasy.StreamPart{finish}, do: exchange(w, c.sent)},
				func(ctx context.Context, m fantasy.LanguageModel) {
					read(m.Stream(ctx, fantasy.Call{}))
				})
			if string(w.sent) != c.want {
				t.Errorf("sent %d bytes", len(w.sent))
			}
			e := s.step(name).Attempts[0].Exchanges[0]
			if !strings.HasPrefix(e.ResponseBody, c.recorded) || len(e.ResponseBody) > 51000 ||
				e.URL != "http://models.test/v1?key=[redacted]" {
				t.Errorf("recorded %+v", e)
			}
			if c.want == small && e.RequestBody != `{"token":"[redacted]","a":"[redacted]"}` || c.want == large &&
				!strings.HasPrefix(e.RequestBody, "[left out: 60008 bytes") {
				t.Errorf("recorded the request %s", e.RequestBody)
			}
		})
	}
}

func TestARecordingFitsWhateverWasSaid(t *testing.T) {
	s := newSession(t)
	// What JSON writes in its longest form.
	text := strings.Repeat("\x01é\xff<", 30000)
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
			Delta: text[:1000]},
			fantasy.StreamPart{Type: fantasy.StreamPartType(fmt.Sprint("odd", i)), ID: text})
	}
	body := `{"a":"` + strings.Repeat(`\u0001`, 8000) + `"}`
	for attempt := range int32(36) {
		s.chat.Status.Generation.Attempt = attempt + 1
		asked := fantasy.Call{}
		if attempt > 33 {
			asked = call
		}
		s.attempt(&model{parts: append(parts, finish), do: func(ctx context.Context) {
			for range 10 {
				exchange(&wire{body: strings.NewReader(body)}, strings.NewReader(body))(ctx)
			}
		}}, func(ctx context.Context, m fantasy.LanguageModel) { read(m.Stream(ctx, asked)) })
	}
	step := s.step(name)
	if len(step.Attempts) > 32 || step.Attempts[len(step.Attempts)-1].Number != 36 ||
		step.State != v1alpha1.DebugCompleted || step.Response == nil {
		t.Errorf("recorded %d attempts, %s", len(step.Attempts), step.State)
	}
	if s.log.Len() > 0 {
		t.Errorf("logged %s", s.log)
	}
}

// chats is how many chats a pod serves in these tests.
const chats = 100

// crowd begins and ends a recorded call of so many chats before anything can be written.
func (s *session) crowd(n int) {
	for i := range n {
		chat := s.chat.DeepCopy()
		chat.Name = fmt.Sprintf("c%d", i)
		recording := s.recorder.Begin(chat, v1alpha1.ActionGenerateAssistant)
		read(recording.Model(&model{parts: []fantasy.StreamPart{delta("secret words"), finish}}, s.subject).
			Stream(s.t.Context(), fantasy.Call{}))
		recording.End(v1alpha1.DebugCompleted, nil)
	}
}

func TestAsManyChatsAsAPodServesLoseNoRecording(t *testing.T) {
	s := newSession(t)
	for range 3 { // A title, a reply and what follows its tools may all wait.
		s.crowd(chats)
		s.chat.Status.History.Version++
	}
	s.flush()
	if len(s.store.steps) != 3*chats || s.log.Len() != 0 || len(s.lost) != 0 {
		t.Errorf("%d are recorded, lost %v, logged %s", len(s.store.steps), s.lost, s.log)
	}
	for name, step := range s.store.steps {
		if step.State != v1alpha1.DebugCompleted {
			t.Errorf("%s is %s", name, step.State)
		}
	}
}

func TestAFullQueueLosesRecordingsAndNothingElse(t *testing.T) {
	s := newSession(t)
	s.crowd(5 * chats)
	if log := s.log.String(); !strings.Contains(log, "QueueFull") || strings.Contains(log, "secret words") {
		t.Errorf("logged %s", log)
	}
	if s.flush(); len(s.store.steps)+len(s.lost)/2 != 5*chats || slices.Compact(s.lost)[0] != "QueueFull" {
		t.Errorf("%d are recorded, and %d writes counted as lost", len(s.store.steps), len(s.lost))
	}
}

func TestARecordingSaysWhichTurnItIsOfAndWhoseMessage(t *testing.T) {
	s := newSession(t)
	s.chat.Status.Turn = &v1alpha1.TurnStatus{Message: "c-prompt", HistoryVersion: 5}
	s.chat.Status.History.Head, s.chat.Status.History.Length = "c-6-1", 4
	s.subject.Config.Spec.Pricing = &v1alpha1.Pricing{Currency: "USD", InputPerMillion: "0", OutputPerMillion: "2"}
	recording := s.recorder.Begin(s.chat, v1alpha1.ActionGenerateAssistant)
	recording.By("alice")
	stream, _ := recording.Model(&model{parts: []fantasy.StreamPart{{Type: fantasy.StreamPartTypeFinish,
		Usage: fantasy.Usage{OutputTokens: 1000}}}}, s.subject).Stream(t.Context(), fantasy.Call{})
	s.flush()
	begun := s.store.steps[name]
	if fields := strings.Fields(begun.Annotations[v1alpha1.AnnotationInProgress]); len(fields) != 3 ||
		fields[0] != "pod" || fields[1] != "1" {
		t.Errorf("in progress: %v", begun.Annotations)
	}
	read(stream, nil)
	recording.End(v1alpha1.DebugCompleted, nil)
	s.flush()
	step := s.store.steps[name]
	if want := (v1alpha1.DebugTurn{Message: "c-prompt", Version: 5, CreatedBy: "alice"}); step.Turn == nil ||
		*step.Turn != want || step.Head != "c-6-1" {
		t.Errorf("recorded %+v, %s", step.Turn, step.Head)
	}
	if c := step.Cost; c == nil || *c != (v1alpha1.Cost{Currency: "USD", MicroUnits: 2000}) {
		t.Errorf("it cost %+v", c)
	}
	if _, still := step.Annotations[v1alpha1.AnnotationInProgress]; still ||
		step.Annotations[v1alpha1.AnnotationHistory] != "7/4" {
		t.Errorf("annotated %v", step.Annotations)
	}
}

func TestNothingIsRecordedWhereThatIsSwitchedOff(t *testing.T) {
	s := newSession(t)
	s.recorder = s.newRecorder(true)
	s.crowd(1)
	if s.flush(); len(s.store.steps) != 0 || s.log.Len() != 0 {
		t.Errorf("recorded %v, logged %s", s.names(), s.log)
	}
}

func TestANamespaceThatRefusesRecordingsIsAskedOnceAMinuteAndEachCallCountsAsLost(t *testing.T) {
	s := newSession(t)
	asked := 0
	s.store.before = func(string) error {
		asked++
		return apierrors.NewForbidden(resource, name, errors.New("recordings of model calls are disabled"))
	}
	for range 5 {
		s.crowd(3)
		s.flush()
		s.now = s.now.Add(20 * time.Second)
	}
	if asked != 6 { // All of the three calls that were begun before the answer came, twice.
		t.Errorf("asked %d times", asked)
	}
	if kinds := slices.Compact(slices.Clone(s.lost)); len(s.lost) != 15 || len(kinds) != 1 || kinds[0] != "Forbidden" {
		t.Errorf("lost %q", s.lost)
	}
}

func TestARecordingThatWasDeletedMeanwhileStaysAway(t *testing.T) {
	s := newSession(t)
	recording := s.recorder.Begin(s.chat, v1alpha1.ActionGenerateAssistant)
	stream, _ := recording.Model(&model{parts: []fantasy.StreamPart{delta("words"), finish}}, s.subject).
		Stream(t.Context(), fantasy.Call{})
	s.flush()
	delete(s.store.steps, name)
	read(stream, nil)
	recording.End(v1alpha1.DebugInterrupted, nil)
	if s.flush(); len(s.store.steps) != 0 || s.log.Len() != 0 {
		t.Errorf("recorded %v, logged %s", s.names(), s.log)
	}
}

func TestWritesThatMeetOthersAreMadeAgain(t *testing.T) {
	s := newSession(t)
	faults := []error{apierrors.NewAlreadyExists(resource, name), apierrors.NewConflict(resource, name, nil)}
	s.store.before = func(string) (err error) {
		if len(faults) > 0 {
			err, faults = faults[0], faults[1:]
		}
		return err
	}
	s.attempt(&model{parts: []fantasy.StreamPart{finish}},
		func(ctx context.Context, m fantasy.LanguageModel) { read(m.Stream(ctx, fantasy.Call{})) })
	if step := s.step(name); step.State != v1alpha1.DebugCompleted || len(faults) != 0 || s.log.Len() != 0 {
		t.Errorf("recorded %+v, logged %s", step, s.log)
	}
}

func TestWhatCannotBeWrittenIsLostWithoutAWordOfIt(t *testing.T) {
	s := newSession(t)
	s.store.before = func(string) error { return apierrors.NewForbidden(resource, name, errors.New("quoting the words")) }
	s.attempt(&model{parts: []fantasy.StreamPart{delta("words"), finish}},
		func(ctx context.Context, m fantasy.LanguageModel) { read(m.Stream(ctx, fantasy.Call{})) })
	if log := s.log.String(); !strings.Contains(log, "Forbidden") || strings.Contains(log, "words") {
		t.Errorf("logged %s", log)
	}
}

func TestTheRecordingOfADeletedChatOfTheSameNameIsLeftAlone(t *testing.T) {
	s := newSession(t)
	answer := &model{parts: []fantasy.StreamPart{finish}}
	call := func(ctx context.Context, m fantasy.LanguageModel) { read(m.Stream(ctx, fantasy.Call{})) }
	s.attempt(answer, call)
	s.chat = s.chat.DeepCopy()
	s.chat.UID = "another"
	s.attempt(answer, call)
	if step := s.step(name); step.ChatUID != "uid" || !strings.Contains(s.log.String(), "NameTaken") {
		t.Errorf("recorded %+v, logged %s", step, s.log)
	}
}

func TestALateEndOfAnOlderAttemptDoesNotHideTheNewerOne(t *testing.T) {
	s := newSession(t)
	answer := &model{parts: []fantasy.StreamPart{finish}}
	recording := s.recorder.Begin(s.chat.DeepCopy(), v1alpha1.ActionGenerateAssistant)
	stream, _ := recording.Model(answer, s.subject).Stream(t.Context(), fantasy.Call{})
	s.chat.Status.Generation.Attempt = 2
	s.attempt(answer, func(ctx context.Context, m fantasy.LanguageModel) { read(m.Stream(ctx, fantasy.Call{})) })
	_ = stream
	recording.End(v1alpha1.DebugInterrupted, nil)
	s.flush()
	step := s.step(name)
	if step.Attempt != 2 || step.State != v1alpha1.DebugCompleted || len(step.Attempts) != 2 ||
		step.Attempts[0].State != v1alpha1.DebugInterrupted {
		t.Errorf("recorded %+v", step)
	}
}
