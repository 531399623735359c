// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

func debugged(s *v1alpha1.ChatSpec) { s.Debug = &v1alpha1.DebugSettings{Enabled: true} }

// recordings are all of the pod's namespace. None of them, nor the log, holds the key.
func (p *pod) recordings() []v1alpha1.ChatDebugStep {
	p.t.Helper()
	var list v1alpha1.ChatDebugStepList
	if err := cluster.Client.List(p.t.Context(), &list, client.InNamespace(p.ns)); err != nil {
		p.t.Fatal(err)
	}
	raw, err := json.Marshal(list)
	if err != nil {
		p.t.Fatal(err)
	}
	if strings.Contains(string(raw)+p.log.String(), strings.TrimPrefix(rightKey, "sk-")) {
		p.t.Fatalf("the key is in %s or %s", raw, p.log)
	}
	return list.Items
}

// recorded waits until the only recording has a status after so many attempts.
func (p *pod) recorded(status v1alpha1.DebugState, attempts int32) *v1alpha1.ChatDebugStep {
	p.t.Helper()
	var all []v1alpha1.ChatDebugStep
	p.eventually(fmt.Sprintf("attempt %d is recorded as %s", attempts, status), func() bool {
		all = p.recordings()
		return len(all) == 1 && all[0].State == status && all[0].Attempt == attempts
	})
	return &all[0]
}

func (p *pod) endsWell() {
	p.t.Helper()
	p.drain()
	p.eventually("the pod has ended", func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
}

func TestNothingIsRecordedUnlessItIsAskedFor(t *testing.T) {
	t.Parallel()
	p := startPod(t, reply(modelserver.Say("Paris")), nil)
	for name, settings := range map[string]*v1alpha1.DebugSettings{"none": nil, "off": {}} {
		c := p.newChat("quiet-"+name, func(s *v1alpha1.ChatSpec) { s.Debug = settings })
		c.ask("quiet-"+name+"-u", "hello")
		c.result()
	}
	p.endsWell()
	if all := p.recordings(); len(all) != 0 {
		t.Errorf("recorded %+v", all)
	}
	if n := p.wire.requests("get chatdebugsteps") + p.wire.requests("create chatdebugsteps"); n != 0 {
		t.Errorf("%d requests were made to record nothing", n)
	}
}

func TestACallIsRecordedFromBothSides(t *testing.T) {
	t.Parallel()
	script := reply(modelserver.Think("A capital."), modelserver.Say("Paris", ", of course."))
	script.Rules[0].Reply.Usage = &modelserver.Usage{Input: 100, Output: 50, Cached: 40}
	p := startPod(t, script, nil)
	c := p.newChat("seen", func(s *v1alpha1.ChatSpec) {
		s.SystemPrompt = "Be brief; my key is " + rightKey
		debugged(s)
		s.Debug.ExpireAfterSeconds = new(int32(600))
	})
	began := time.Now()
	c.ask("seen-u", `{"question":"the capital?","password":"hunter2"}`)
	m := c.result()
	step := p.recorded(v1alpha1.DebugCompleted, 1)

	owner := step.OwnerReferences
	if step.Name != "seen-1-generateassistant" || len(owner) != 1 || owner[0].UID != c.chat.UID ||
		step.ChatUID != string(c.chat.UID) {
		t.Errorf("got %s of %+v", step.Name, owner)
	}
	expires, err := time.Parse(time.RFC3339, step.Annotations[v1alpha1.AnnotationExpiresAt])
	if err != nil || expires.Before(began.Add(599*time.Second)) || expires.After(time.Now().Add(601*time.Second)) {
		t.Errorf("it expires at %s, %v", expires, err)
	}
	s := step.DebugRecording
	if s.Action != v1alpha1.ActionGenerateAssistant || s.HistoryVersion != 1 || s.Call != 1 ||
		s.Pod != p.name ||
		s.Error != nil || s.FinishedAt.Before(&s.StartedAt) || s.Model != *m.Spec.Generation.Model {
		t.Errorf("got %+v", s)
	}
	asked := s.Request.Messages
	if len(asked) != 2 || asked[0].Role != "system" || asked[0].Parts[0].Text != "Be brief; my key is [redacted]" ||
		asked[1].Parts[0].Text != `{"question":"the capital?","password":"[redacted]"}` {
		t.Errorf("asked %+v", asked)
	}
	if len(s.Request.Tools) != 1 || s.Request.Tools[0].Name != "current_time" ||
		!json.Valid([]byte(s.Request.Tools[0].InputSchema)) || !strings.Contains(s.Request.Options, `"maxOutputTokens":77`) {
		t.Errorf("with %+v and %s", s.Request.Tools, s.Request.Options)
	}
	r := s.Response
	if len(r.Parts) != 2 || r.Parts[0].Text != "A capital." || r.Parts[1].Text != "Paris, of course." ||
		r.FinishReason != "stop" || r.Usage != *m.Spec.Generation.Usage || len(r.PartCounts) == 0 {
		t.Errorf("answered %+v", r)
	}
	checkExchange(t, s.Attempts)
}

func checkExchange(t *testing.T, attempts []v1alpha1.DebugAttempt) {
	t.Helper()
	if len(attempts) != 1 || len(attempts[0].Exchanges) != 1 || attempts[0].State != v1alpha1.DebugCompleted {
		t.Fatalf("the attempts are %+v", attempts)
	}
	e := attempts[0].Exchanges[0]
	if e.Method != http.MethodPost || !strings.HasSuffix(e.URL, "/v1/chat/completions") || e.StatusCode != 200 ||
		e.Failure != "" {
		t.Errorf("the exchange is %+v", e)
	}
	if !json.Valid([]byte(e.RequestBody)) || !strings.Contains(e.RequestBody, "the capital?") ||
		strings.Contains(e.RequestBody, "hunter2") {
		t.Errorf("the request is %s", e.RequestBody)
	}
	if !strings.Contains(e.ResponseBody, `data: {`) || !strings.Contains(e.ResponseBody, `"prompt_tokens":100`) {
		t.Errorf("the response is %s", e.ResponseBody)
	}
	headers := map[string]string{}
	for _, h := range append(e.RequestHeaders, e.ResponseHeaders...) {
		headers[h.Name] = h.Value
	}
	if headers["Authorization"] != "[redacted]" || !strings.HasPrefix(headers["User-Agent"], "parley") {
		t.Errorf("the headers are %v", headers)
	}
}

func TestANamespaceRecordsByItsModelConfiguration(t *testing.T) {
	t.Parallel()
	p := startPod(t, reply(modelserver.Say("Paris")), nil)
	config, err := p.configOf("default")
	if err != nil {
		t.Fatal(err)
	}
	watched := modelConfig(p.ns, "watched", config.Spec.BaseURL)
	watched.Spec.Debug = &v1alpha1.DebugSettings{Enabled: true}
	create(t, watched)
	c := p.newChat("unaware", nil)
	c.say("unaware-u", "hello")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "unaware-u"}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: "unaware-u", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
		s.Generation.ModelConfig = "watched"
	})
	if step := p.recorded(v1alpha1.DebugCompleted, 1); step.Model.Config != "watched" {
		t.Errorf("got %+v", step.Model)
	}
}

func TestARetriedCallIsOneStepWithTwoAttempts(t *testing.T) {
	t.Parallel()
	for name, between := range map[string]func(*pod){"by the same pod": func(*pod) {},
		"by a pod that was restarted": func(p *pod) {
			p.endsWell()
			p.stop()
			p.launch(nil)
		}} {
		t.Run(name, func(t *testing.T) {
			script := reply(modelserver.Say("Paris"))
			script.Rules = append([]modelserver.Rule{{Times: 1,
				Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 529}}}}, script.Rules...)
			p := startPod(t, script, nil)
			c := p.newChat("again", debugged)
			c.ask("again-u", "hello")
			c.failure(v1alpha1.ErrorOverloaded)
			first := p.recorded(v1alpha1.DebugError, 1)
			if first.Error == nil || first.Error.Reason != v1alpha1.ErrorOverloaded ||
				first.Error.StatusCode != 529 {
				t.Errorf("the error is %+v", first.Error)
			}
			c.write(func(s *v1alpha1.ChatStatus) { s.Generation = nil })
			between(p)
			c.write(func(s *v1alpha1.ChatStatus) { s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 2) })
			c.result()
			step := p.recorded(v1alpha1.DebugCompleted, 2)
			a := step.Attempts
			if step.UID != first.UID || step.Error != nil || len(a) != 2 || a[0].Error == nil ||
				a[0].Exchanges[0].StatusCode != 529 ||
				a[1].Number != 2 || a[1].Error != nil || a[1].Exchanges[0].StatusCode != 200 ||
				step.Response.Parts[0].Text != "Paris" {
				t.Errorf("got %+v", step.DebugRecording)
			}
		})
	}
}

func TestACompactionIsRecordedBesideTheReplies(t *testing.T) {
	t.Parallel()
	p := startPod(t, summarises(modelserver.Say("They spoke.")), nil)
	c := p.newChat("long", debugged)
	c.ask("long-1", "tell me about apples")
	c.commit(c.result(), "")
	c.ask("long-2", "and pears")
	c.compact(v1alpha1.CompactionManual)
	p.endsWell()
	var summary *v1alpha1.ChatDebugStep
	for _, step := range p.recordings() {
		if step.Action == v1alpha1.ActionCompact {
			summary = &step
		}
	}
	if summary == nil || summary.Name != fmt.Sprintf("long-%d-compact", c.chat.Status.History.Version) ||
		summary.Response.Parts[0].Text != "They spoke." {
		t.Errorf("recorded %+v", summary)
	}
}

func TestAnAttemptThatNobodyEndedWasBrokenOff(t *testing.T) {
	t.Parallel()
	p := startPod(t, reply(modelserver.Say("Paris")), nil)
	c := p.newChat("crashed", debugged)
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	create(t, &v1alpha1.ChatDebugStep{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "crashed-1-generateassistant"},
		DebugRecording: v1alpha1.DebugRecording{
			ChatRef: v1alpha1.ChatReference{Name: "crashed"}, ChatUID: string(c.chat.UID), HistoryVersion: 1,
			Action: v1alpha1.ActionGenerateAssistant,
			Call:   1, Pod: "another", Attempt: 1, State: v1alpha1.DebugInProgress,
			StartedAt: now,
			Attempts:  []v1alpha1.DebugAttempt{{Number: 1, Pod: "another", State: v1alpha1.DebugInProgress, StartedAt: now}},
		},
	})
	c.say("crashed-u", "hello")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "crashed-u"}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: "crashed-u", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 2)
	})
	step := p.recorded(v1alpha1.DebugCompleted, 2)
	if a := step.Attempts; len(a) != 2 || a[0].State != v1alpha1.DebugInterrupted || a[0].Pod != "another" ||
		!step.StartedAt.Equal(&now) {
		t.Errorf("the attempts are %+v", a)
	}
}

func TestHowACallEndedIsRecorded(t *testing.T) {
	t.Parallel()
	cut := reply(modelserver.Say("Par", "is"))
	cut.Rules[0].Reply.Fault = &modelserver.Fault{Kind: modelserver.FaultCut, After: new(1)}
	reset := reply()
	reset.Rules[0].Reply.Fault = &modelserver.Fault{Kind: modelserver.FaultReset}
	for name, want := range map[string]struct {
		script  modelserver.Script
		stop    bool
		status  v1alpha1.DebugState
		failure v1alpha1.DebugFailure
		text    string
	}{
		"interrupted by a person": {hangs(), true, v1alpha1.DebugInterrupted, v1alpha1.DebugCancelled, "Well"},
		"cut by the provider":     {cut, false, v1alpha1.DebugError, v1alpha1.DebugBrokenOff, "Par"},
		"without a response":      {reset, false, v1alpha1.DebugError, v1alpha1.DebugNoResponse, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, want.script, nil)
			c := p.newChat("ended", debugged)
			c.ask("ended-u", "hello")
			if want.stop {
				p.eventually("the model has said a word", func() bool { text, _ := p.relay.heard(c.fence()); return text != "" })
				c.write(func(s *v1alpha1.ChatStatus) { s.Phase = v1alpha1.ChatInterrupting })
			}
			step := p.recorded(want.status, 1)
			if got := step.Attempts[0].Exchanges[0].Failure; got != want.failure ||
				(step.Error != nil) != (want.status == v1alpha1.DebugError) {
				t.Errorf("failure %s, error %+v", got, step.Error)
			}
			if r := step.Response; want.text != "" && (r == nil || r.Parts[0].Text != want.text) {
				t.Errorf("the response is %+v", r)
			}
		})
	}
}

func TestAnApiServerThatDoesNotTakeRecordingsDelaysNothing(t *testing.T) {
	t.Parallel()
	p := startPod(t, reply(modelserver.Say("Paris")), nil)
	held := make(chan struct{})
	asked := make(chan struct{}, 100)
	p.wire.mu.Lock()
	p.wire.fault = func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		if !strings.HasSuffix(kindOf(r), "chatdebugsteps") {
			return nil, nil
		}
		asked <- struct{}{}
		<-held
		return answers(500, metav1.StatusReasonInternalError)(r, nil)
	}
	p.wire.mu.Unlock()
	for _, name := range []string{"first", "second"} {
		c := p.newChat(name, debugged)
		c.ask(name+"-u", "hello")
		if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted || textOf(t, m) != "Paris" {
			t.Errorf("got %+v", m.Spec.Generation)
		}
	}
	<-asked // The API server was asked, and has not answered yet.
	close(held)
	p.eventually("the loss is logged",
		func() bool { return strings.Contains(p.log.String(), "a recording of a model call was lost") })
	p.recordings()
}

func TestTheKeyIsInNoRecordingOfAnyProvider(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*v1alpha1.ChatModelConfigSpec){
		"openai": func(s *v1alpha1.ChatModelConfigSpec) { s.Provider = v1alpha1.ProviderOpenAI },
		"openai, responses": func(s *v1alpha1.ChatModelConfigSpec) {
			s.Provider, s.Transport = v1alpha1.ProviderOpenAI, v1alpha1.TransportResponses
		},
		"anthropic": func(s *v1alpha1.ChatModelConfigSpec) {
			s.Provider, s.BaseURL = v1alpha1.ProviderAnthropic, strings.TrimSuffix(s.BaseURL, "/v1")
		},
		"azure":  func(s *v1alpha1.ChatModelConfigSpec) { s.Provider, s.APIVersion = v1alpha1.ProviderAzure, "2024-06-01" },
		"google": func(s *v1alpha1.ChatModelConfigSpec) { s.Provider = v1alpha1.ProviderGoogle },
		"vercel": func(s *v1alpha1.ChatModelConfigSpec) { s.Provider = v1alpha1.ProviderVercel },
	} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, reply(modelserver.Say("Paris")), nil)
			right, err := p.configOf("default")
			if err != nil {
				t.Fatal(err)
			}
			config := modelConfig(p.ns, "other", right.Spec.BaseURL)
			change(&config.Spec)
			create(t, config)
			c := p.newChat("chat", debugged)
			c.say("chat-u", "hello")
			c.write(func(s *v1alpha1.ChatStatus) {
				s.Turn = &v1alpha1.TurnStatus{Message: "chat-u"}
				s.History = v1alpha1.HistoryStatus{Version: 1, Head: "chat-u", Length: 1}
				s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
				s.Generation.ModelConfig = "other"
			})
			// Not every URL here is one that the provider's protocol has: an error is recorded as well.
			status := v1alpha1.DebugCompleted
			if c.result().Spec.Generation.Outcome == v1alpha1.OutcomeFailed {
				status = v1alpha1.DebugError
			}
			step := p.recorded(status, 1)
			if e := step.Attempts[0].Exchanges; len(e) != 1 || e[0].StatusCode == 0 ||
				!strings.Contains(e[0].RequestBody, "hello") {
				t.Errorf("the exchanges are %+v", e)
			}
			t.Logf("%s: %s", step.State, step.Attempts[0].Exchanges[0].URL)
		})
	}
}
