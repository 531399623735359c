// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/modelserver"
)

func TestWhatCannotBeDoneSaysWhatToDo(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	withKey := func(name, key string) *v1alpha1.ChatModelConfig {
		config := modelConfig(p.ns, name, "http://127.0.0.1:1/v1")
		config.Spec.APIKey.SecretKeyRef.Key = key
		return config
	}
	right, err := p.configOf("default")
	if err != nil {
		t.Fatal(err)
	}
	wrong := withKey("wrong", "wrong")
	wrong.Spec.BaseURL = right.Spec.BaseURL
	for _, config := range []*v1alpha1.ChatModelConfig{wrong, withKey("missing", "absent"), withKey("empty", "empty"),
		withKey("refused", "right")} {
		create(t, config)
	}
	for config, want := range map[string]struct {
		reason v1alpha1.ErrorReason
		says   string
	}{
		"wrong": {v1alpha1.ErrorAuthenticationFailed,
			`openai-compatible refused the API key of ChatModelConfig wrong (401). Put a valid key into key "wrong" of Secret keys`},
		"missing": {v1alpha1.ErrorAPIKeyMissing,
			"Secret keys does not exist in namespace " + p.ns + `, or has no key "absent", or that is empty`},
		"empty":   {v1alpha1.ErrorAPIKeyMissing, "Create Secret keys in namespace " + p.ns + ` with the key "empty"`},
		"refused": {v1alpha1.ErrorProviderUnavailable, "baseURL of ChatModelConfig refused"},
		"absent":  {v1alpha1.ErrorModelConfigNotFound, "ChatModelConfig absent does not exist"},
	} {
		t.Run(config, func(t *testing.T) {
			c := p.newChat("chat-"+config, nil)
			c.say(config+"-u", "hello")
			c.write(func(s *v1alpha1.ChatStatus) {
				s.Turn = &v1alpha1.TurnStatus{Message: config + "-u"}
				s.History = v1alpha1.HistoryStatus{Version: 1, Head: config + "-u", Length: 1}
				s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
				s.Generation.ModelConfig = config
			})
			e := c.failure(want.reason)
			if !strings.Contains(e.Text(), want.says) || strings.Contains(e.Text(), "sk-") {
				t.Errorf("the message is %s", e.Text())
			}
		})
	}
}

func (p *pod) configOf(name string) (*v1alpha1.ChatModelConfig, error) {
	c, err := apiclient.New(cluster.Config, "test")
	if err != nil {
		return nil, err
	}
	return c.ModelConfigs(p.ns).Get(p.t.Context(), name)
}

func TestAConfigurationThatTheWatchHasNotBroughtYetIsFound(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	config, err := p.configOf("default")
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // the two watches race
		c := p.newChat("race-"+rand.String(6), nil)
		name := c.chat.Name + "-config"
		c.say(c.chat.Name+"-u", "hello")
		create(t, modelConfig(p.ns, name, config.Spec.BaseURL))
		c.write(func(s *v1alpha1.ChatStatus) {
			s.Turn = &v1alpha1.TurnStatus{Message: c.chat.Name + "-u"}
			s.History = v1alpha1.HistoryStatus{Version: 1, Head: c.chat.Name + "-u", Length: 1}
			s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
			s.Generation.ModelConfig = name
		})
		if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
			t.Fatalf("got %+v", m.Spec.Generation.Error)
		}
	}
}

func TestAHistoryWithAGapNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	c := p.newChat("gap", nil)
	c.say("gap-u", "hello")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "gap-u", Parent: "gap-gone", Index: 1}
		s.History = v1alpha1.HistoryStatus{Version: 3, Head: "gap-u", Length: 2}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	if e := c.failure(v1alpha1.ErrorHistoryBroken); !strings.Contains(e.Text(), "gap-gone") {
		t.Errorf("the message is %s", e.Text())
	}
}

func TestASilentProviderIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]*int{"before the head": nil, "within the stream": new(1)} {
		t.Run(name, func(t *testing.T) {
			script := hangs()
			script.Rules[0].Reply.Fault.After = after
			p := startPod(t, script, nil)
			c := p.newChat("silent", nil)
			c.config = "impatient"
			c.ask("silent-u", "hello")
			if e := c.failure(v1alpha1.ErrorProviderSilent); !strings.Contains(e.Text(), "nothing for 1s") || !e.Retryable {
				t.Errorf("the error is %+v", e)
			}
			p.aborted()
		})
	}
}

func TestAResultIsCreatedOverErrors(t *testing.T) {
	t.Parallel()
	cases := map[string][]func(*http.Request, http.RoundTripper) (*http.Response, error){
		"that never arrived": {cutBefore, answers(500, metav1.StatusReasonInternalError),
			answers(504, metav1.StatusReasonTimeout)},
		"whose answer was lost":         {cutAfter},
		"of an API server that is full": {answers(503, metav1.StatusReasonServiceUnavailable)},
		// Until it has read the roles it refuses everybody.
		"of an API server that was just started": {answers(403, metav1.StatusReasonForbidden),
			answers(403, metav1.StatusReasonForbidden)},
		"of a policy that is starting": {refuses(422, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'p' with "+
			"binding 'b' denied request: failed to configure binding: paramKind kind `k` not yet synced to use for admission")},
	}
	for name, faults := range cases {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, modelserver.Script{}, nil)
			p.wire.onCreate(faults...)
			c := p.newChat("stubborn", nil)
			c.ask("stubborn-u", "hello")
			if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
				t.Errorf("got %+v", m.Spec.Generation)
			}
			p.settled()
			if n := len(p.models.Requests()); n != 2 {
				t.Errorf("the model was asked %d times by two chats", n)
			}
			p.drain()
			p.eventually("nobody tries any more", func() bool {
				select {
				case <-p.ended:
					return true
				default:
					return false
				}
			})
		})
	}
}

func TestALeftoverOfADeletedChatIsNotTakenForTheResult(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	c := p.newChat("again", nil)
	now := metav1.NowMicro()
	leftover := &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "again-1-1"},
		Spec: v1alpha1.ChatMessageSpec{
			ChatRef: v1alpha1.ChatReference{Name: "again"}, Role: v1alpha1.RoleAssistant,
			Generation: &v1alpha1.MessageGeneration{
				ChatUID: "the-former-chat", HistoryVersion: 1, Attempt: 1, Action: v1alpha1.ActionGenerateAssistant, Pod: p.name,
				Outcome: v1alpha1.OutcomeLost, StartedAt: now, FinishedAt: now,
			},
		},
	}
	create(t, leftover)
	c.ask("again-u", "hello")
	p.eventually("the create has been tried twice",
		func() bool { return strings.Count(p.log.String(), "trying again") >= 2 })
	if err := cluster.Client.Delete(t.Context(), leftover); err != nil {
		t.Fatal(err)
	}
	if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
		t.Errorf("got %+v", m.Spec.Generation)
	}
	if n := len(p.models.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

func TestAResultThatIsRefusedForGoodBecomesAFailure(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]func(*http.Request, http.RoundTripper) (*http.Response, error){
		"invalid":   answers(422, metav1.StatusReasonInvalid),
		"forbidden": answers(403, metav1.StatusReasonForbidden),
		"too large": answers(413, metav1.StatusReasonRequestEntityTooLarge),
	} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, reply(modelserver.Say("Paris")), func(_ *pod, o *runner.Options) { o.Forbidden = time.Nanosecond })
			p.wire.onCreate(refusal)
			c := p.newChat("refused", nil)
			c.ask("refused-u", "hello")
			e := c.failure(v1alpha1.ErrorInternal)
			if usage := c.result().Spec.Generation.Usage; usage == nil || usage.TotalTokens == 0 {
				t.Error("the reply was paid, and nobody knows")
			}
			if !strings.Contains(e.Text(), "refused the finished step") || strings.Contains(e.Text()+p.log.String(), "Paris") {
				t.Errorf("the message is %s, the log %s", e.Text(), p.log)
			}
		})
	}
}

func TestAResultIsNotCreatedAnyMoreWhenTheFenceHasMovedOn(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	down := make([]func(*http.Request, http.RoundTripper) (*http.Response, error), 100)
	for i := range down {
		down[i] = answers(500, metav1.StatusReasonInternalError)
	}
	p.wire.onCreate(down...)
	c := p.newChat("late", nil)
	c.ask("late-u", "hello")
	first := c.resultName()
	p.eventually("the create has failed", func() bool { return strings.Contains(p.log.String(), "trying again") })
	c.write(func(s *v1alpha1.ChatStatus) { s.Generation = nil })
	p.drain()
	<-p.ended // nobody is left who tries
	if p.message(first) != nil {
		t.Error("a result was created for a fence that had moved on")
	}
}

// dialer keeps the connections to the API server, so that they can be cut.
type dialer struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.conns = append(d.conns, conn)
	}
	return conn, err
}

func (d *dialer) cut() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, conn := range d.conns {
		_ = conn.Close()
	}
	return len(d.conns)
}

func TestTheWatchSurvivesTheApiServersConnections(t *testing.T) {
	t.Parallel()
	d := &dialer{}
	p := startPod(t, modelserver.Script{}, func(p *pod, o *runner.Options) {
		cfg := rest.CopyConfig(cluster.Config)
		cfg.Dial = d.dial
		var err error
		if o.Client, err = apiclient.New(cfg, "parley-generator-test"); err != nil {
			p.t.Fatal(err)
		}
	})
	p.settled()
	if d.cut() == 0 {
		t.Fatal("there was no connection to cut")
	}
	p.settled()
}
