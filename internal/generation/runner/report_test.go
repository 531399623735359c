// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

func TestResultIsCreatedOverErrors(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]fault{
		"that never arrived": {cutBefore, answers(500, metav1.StatusReasonInternalError),
			answers(504, metav1.StatusReasonTimeout)},
		"whose answer was lost":         {cutAfter},
		"of an API server that is full": {answers(503, metav1.StatusReasonServiceUnavailable)},
		// Until it has read the roles it refuses everybody.
		"of an API server that was just started": {answers(403, metav1.StatusReasonForbidden),
			answers(403, metav1.StatusReasonForbidden)},
		"of a policy that is starting": {refuses(422, metav1.StatusReasonInvalid, "ValidatingAdmissionPolicy 'p' with "+
			"binding 'b' denied request: failed to configure binding: paramKind kind `k` not yet synced to use for admission")},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, paris, nil)
			p.wire.onCreate(faults...)
			c := p.newChat("stubborn", nil)
			c.ask("stubborn-u", "hello")
			c.ended("Completed: Paris")
			p.settled()
			check.Equal(t, "calls for two chats", 2, len(p.models.Requests()))
			p.drain()
			<-p.ended // Nobody tries any longer.
		})
	}
}

// strangers are messages that have the name of the result, by those who made them.
func (c *conversation) stranger(chat string, change func(*v1beta1.MessageGeneration)) *v1beta1.ChatMessage {
	m := chattest.In(c.ns, chattest.Generated(c.chat.Name+"-1-1", v1beta1.RoleAssistant, chattest.Lost()))
	m.Spec.ChatRef.Name = chat
	g := m.Spec.Generation
	g.ChatUID, g.HistoryVersion, g.Attempt = string(c.chat.UID), 1, 1
	g.Action, g.Pod = v1beta1.ActionGenerateAssistant, c.name
	g.StartedAt, g.FinishedAt = metav1.NowMicro(), metav1.NowMicro()
	change(g)
	create(c.t, m)
	return m
}

func (p *pod) triedTwice() {
	p.t.Helper()
	p.eventually("the create has been tried twice",
		func() bool { return strings.Count(p.log.String(), "trying again") >= 2 })
}

func TestLeftoverOfADeletedChatIsNoResult(t *testing.T) {
	t.Parallel()
	c := startPod(t, paris, nil).newChat("again", nil)
	leftover := c.stranger("again", func(g *v1beta1.MessageGeneration) { g.ChatUID = "the-former-chat" })
	c.ask("again-u", "hello")
	c.triedTwice()
	check.OK(t, cluster.Client.Delete(t.Context(), leftover))
	c.ended("Completed: Paris")
	check.Equal(t, "calls", 1, len(c.models.Requests()))
}

func TestTakenNameEndsTheAttemptOnly(t *testing.T) {
	t.Parallel()
	for name, reported := range map[string]int{"another": 0, "taken": 1} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, paris, nil)
			c := p.newChat("taken", nil)
			c.stranger(name, func(g *v1beta1.MessageGeneration) {
				if g.Pod = "stranger"; name == "another" {
					g.ChatUID = "unused"
				}
			})
			c.ask("taken-u", "hello")
			p.triedTwice()
			check.Equal(t, "times that it is logged", reported, strings.Count(p.log.String(), "ResultNameConflict"))
			c.write(func(s *v1beta1.ChatStatus) { s.Generation.Attempt = 2 })
			check.Equal(t, "the next result", "taken-1-2", c.ended("Completed: Paris").Name)
		})
	}
}

func TestRefusedResultIsReplacedByLess(t *testing.T) {
	t.Parallel()
	invalid := answers(422, metav1.StatusReasonInvalid)
	script := modelserver.Script{Rules: []modelserver.Rule{usesTool.Rules[1], paris.Rules[0]}}
	script.Rules[1].Reply.DelayBefore = modelserver.Duration(200 * time.Millisecond) // The title comes first.
	for name, faults := range map[string][]fault{
		"invalid": {invalid}, "forbidden": {answers(403, metav1.StatusReasonForbidden)},
		"too large": {answers(413, metav1.StatusReasonRequestEntityTooLarge)}, "twice": {invalid, invalid},
	} {
		t.Run(name, func(t *testing.T) {
			p := startPod(t, script, func(_ *pod, o *runner.Options) { o.Forbidden = time.Nanosecond })
			p.wire.onCreate(faults...)
			c := p.newChat("refused", nil)
			c.config = "captioned"
			c.ask("refused-u", "hello")
			g := c.ended("Failed InternalError").Spec.Generation
			check.Contains(t, g.Error.Text(), "refused the finished step")
			check.Lacks(t, g.Error.Text()+p.log.String(), "Paris")
			if bare := len(faults) > 1; bare {
				check.Equal(t, "what comes from the provider", &v1beta1.MessageGeneration{}, &v1beta1.MessageGeneration{
					Usage: g.Usage, Model: g.Model, FinishReason: g.FinishReason, Title: g.Title, TitleCall: g.TitleCall})
			} else if g.Usage == nil || g.Usage.TotalTokens == 0 || g.TitleCall != nil {
				t.Errorf("the reply is accounted as %+v, its title as %+v", g.Usage, g.TitleCall)
			}
			p.eventually("the title is there", func() bool { return len(p.models.Requests()) == 2 && p.models.InFlight() == 0 })
			c.write(func(s *v1beta1.ChatStatus) { s.Generation.Attempt = 2 })
			g = c.result().Spec.Generation
			check.Equal(t, "the title, which is paid later", []any{"Stuck pods", true}, []any{g.Title, g.TitleCall != nil})
		})
	}
}

func TestRefusedPartialReplyEndsTheInterruption(t *testing.T) {
	t.Parallel()
	c := hanging(t, nil)
	c.wire.onCreate(answers(422, metav1.StatusReasonInvalid))
	c.write(interrupt)
	c.ended("Interrupted")
}

func TestNoResultIsCreatedBehindTheFence(t *testing.T) {
	t.Parallel()
	p := startPod(t, paris, nil)
	p.wire.onCreate(slices.Repeat([]fault{answers(500, metav1.StatusReasonInternalError)}, 100)...)
	c := p.newChat("late", nil)
	c.ask("late-u", "hello")
	first := c.resultName()
	p.eventually("the create has failed", func() bool { return strings.Contains(p.log.String(), "trying again") })
	c.write(func(s *v1beta1.ChatStatus) { s.Generation = nil })
	p.drain()
	<-p.ended // Nobody is left who tries.
	check.Equal(t, "the result of the first", nil, p.message(first))
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

func TestWatchSurvivesCutConnections(t *testing.T) {
	t.Parallel()
	d := &dialer{}
	p := startPod(t, paris, func(p *pod, o *runner.Options) {
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
