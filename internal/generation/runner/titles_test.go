// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/test/modelserver"
)

// entitles is a model that answers a demand for a title with the first reply, and all else with "Fine.", slowly enough
// for what a title's answer sets off to be done.
func entitles(title modelserver.Reply) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{
		{Name: "title", Match: modelserver.Match{LastUserText: "<message>"}, Reply: title},
		{Name: "reply", Reply: modelserver.Reply{
			Steps: []modelserver.Step{modelserver.Say("Fine.")}, Usage: &modelserver.Usage{Input: 10, Output: 5},
			DelayBefore: modelserver.Duration(300 * time.Millisecond),
		}},
	}}
}

var titleOfPods = modelserver.Reply{
	Steps: []modelserver.Step{modelserver.Call("set_title", `{"title":"\"Stuck pods.\""}`)},
	Usage: &modelserver.Usage{Input: 40, Output: 8},
}

// order holds back the answers of a model: those to replies until a title has been read, or those to titles until they
// are released.
type order struct {
	next http.RoundTripper
	// titleFirst holds replies back.
	titleFirst bool
	// release lets titles through, unless it is nil.
	release chan struct{}
	read    chan struct{}
	once    sync.Once
}

func (o *order) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	forTitle := bytes.Contains(body, []byte(`<message>`)) || bytes.Contains(body, []byte(`\u003cmessage\u003e`))
	wait := o.release
	if !forTitle {
		wait = nil
		if o.titleFirst {
			wait = o.read
		}
	}
	if wait != nil {
		select {
		case <-wait:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	response, err := o.next.RoundTrip(r)
	if forTitle && err == nil {
		response.Body = &readOnce{response.Body, func() { o.once.Do(func() { close(o.read) }) }}
	}
	return response, err
}

// readOnce tells when a body has been read.
type readOnce struct {
	io.ReadCloser
	done func()
}

func (r *readOnce) Close() error {
	defer r.done()
	return r.ReadCloser.Close()
}

// titling starts a pod with a ChatModelConfig "titled" whose titles the configuration "cheap" writes.
func titling(t *testing.T, script modelserver.Script, o *order) *pod {
	t.Helper()
	p := startPod(t, script, func(_ *pod, options *runner.Options) {
		if o != nil {
			o.next, o.read = options.HTTP.Transport, make(chan struct{})
			options.HTTP = &http.Client{Transport: o}
		}
	})
	p.configureTitles()
	return p
}

// configureTitles creates the configurations "titled", "cheap", and "alone", which writes its titles itself.
func (p *pod) configureTitles() {
	p.t.Helper()
	t := p.t
	var right v1alpha1.ChatModelConfig
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: "default"}, &right); err != nil {
		t.Fatal(err)
	}
	cheap := modelConfig(p.ns, "cheap", right.Spec.BaseURL)
	cheap.Spec.Model = "cheap"
	cheap.Spec.Pricing = &v1alpha1.Pricing{Currency: "EUR", InputPerMillion: "1", OutputPerMillion: "2"}
	create(t, cheap)
	titled := modelConfig(p.ns, "titled", right.Spec.BaseURL)
	titled.Spec.Titles = &v1alpha1.CaptionSettings{ModelConfigRef: &v1alpha1.ModelConfigReference{Name: "cheap"}}
	create(t, titled)
	alone := modelConfig(p.ns, "alone", right.Spec.BaseURL)
	alone.Spec.Titles = &v1alpha1.CaptionSettings{}
	create(t, alone)
}

func (p *pod) newTitledChat(name string, change func(*v1alpha1.ChatSpec)) *conversation {
	p.t.Helper()
	c := p.newChat(name, change)
	c.config = "titled"
	return c
}

// accept commits a message as the reconciler does, title and all.
func (c *conversation) accept(m *v1alpha1.ChatMessage) {
	c.t.Helper()
	c.commit(m, "")
	if g := m.Spec.Generation; g.Title != "" {
		c.write(func(s *v1alpha1.ChatStatus) { s.Title, s.TitleSource = g.Title, g.TitleSource })
	}
}

func (c *conversation) wantTitle(m *v1alpha1.ChatMessage, title string, source v1alpha1.TitleSource, paid bool) {
	c.t.Helper()
	g := m.Spec.Generation
	if g.Title != title || g.TitleSource != source || (g.TitleCall != nil) != paid {
		c.t.Errorf("%s has title %q from %q, call %+v; want %q from %q, a call: %v; the log: %s", m.Name, g.Title,
			g.TitleSource, g.TitleCall, title, source, paid, c.log)
	}
}

// titleRequests are the demands for titles.
func (p *pod) titleRequests() (bodies []string) {
	for _, r := range p.models.Requests() {
		if r.Rule == "title" {
			bodies = append(bodies, string(r.Body))
		}
	}
	return bodies
}

const longQuestion = "Why would a pod be stuck in ContainerCreating?"

func TestATitleComesWithTheFirstReply(t *testing.T) {
	t.Parallel()
	p := titling(t, entitles(titleOfPods), &order{titleFirst: true})
	c := p.newTitledChat("c", func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be brief." })
	c.ask("one", longQuestion)
	m := c.result()
	c.wantTitle(m, "Stuck pods", v1alpha1.TitleFromModel, true)
	g := m.Spec.Generation
	if want := (v1alpha1.TokenUsage{InputTokens: 40, OutputTokens: 8, TotalTokens: 48}); g.TitleCall.Usage != want ||
		g.TitleCall.Model.Config != "cheap" || g.TitleCall.Model.Name != "cheap" ||
		*g.TitleCall.Cost != (v1alpha1.Cost{Currency: "EUR", MicroUnits: 56}) {
		t.Errorf("the call is %+v", g.TitleCall)
	}
	if g.Usage.TotalTokens != 15 || g.Model.Config != "titled" || g.PendingCalls != 0 || textOf(t, m) != "Fine." {
		t.Errorf("the reply is %+v", g)
	}
	requests := p.titleRequests()
	if len(requests) != 1 || !strings.Contains(requests[0], longQuestion) || strings.Contains(requests[0], "Be brief.") ||
		!strings.Contains(requests[0], `"max_tokens":77`) {
		t.Errorf("the model was asked %q", requests)
	}

	c.accept(m)
	c.ask("two", "And then?")
	c.wantTitle(c.result(), "", "", false)
	if n := len(p.titleRequests()); n != 1 {
		t.Errorf("%d titles were asked for", n)
	}
}

func TestASlowTitleDelaysNothingAndComesWithTheNextTurn(t *testing.T) {
	t.Parallel()
	o := &order{release: make(chan struct{})}
	p := titling(t, entitles(titleOfPods), o)
	c := p.newTitledChat("c", nil)
	c.ask("one", longQuestion)
	m := c.result()
	c.wantTitle(m, "Why would a pod be stuck…", v1alpha1.TitleFromFirstWords, false)
	c.accept(m)
	close(o.release)
	<-o.read
	c.ask("two", "And then?")
	m = c.result()
	c.wantTitle(m, "Stuck pods", v1alpha1.TitleFromModel, true)
	c.accept(m)
	c.ask("three", "And then?")
	c.wantTitle(c.result(), "", "", false)
}

func TestATitleThatFailsLeavesTheFirstWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply    modelserver.Reply
		paid     bool
		requests int
	}{
		"an error": {modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429}}, false,
			1},
		"no title": {modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("set_title", `{}`)},
			Usage: &modelserver.Usage{Input: 40, Output: 8}}, true, 1},
		"no tool, no words": {modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 400}}, false,
			2},
	} {
		t.Run(name, func(t *testing.T) {
			p := titling(t, entitles(c.reply), &order{titleFirst: true})
			chat := p.newTitledChat("c", nil)
			chat.ask("one", longQuestion)
			m := chat.result()
			chat.wantTitle(m, "Why would a pod be stuck…", v1alpha1.TitleFromFirstWords, c.paid)
			p.eventually("all calls were made", func() bool { return len(p.titleRequests()) == c.requests })
			if m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
				t.Errorf("outcome %s", m.Spec.Generation.Outcome)
			}
			if p.log.String() != "" {
				t.Errorf("it was logged: %s", p.log)
			}
		})
	}
}

func TestAModelWithoutToolsSaysTheTitle(t *testing.T) {
	t.Parallel()
	script := entitles(modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Title: \"Stuck pods\"")}})
	refuse := modelserver.Rule{Name: "title", Match: modelserver.Match{ToolOffered: "set_title"},
		Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 400}}}
	script.Rules = append([]modelserver.Rule{refuse}, script.Rules...)
	o := &order{release: make(chan struct{})}
	p := titling(t, script, o)
	c := p.newTitledChat("c", nil)
	c.ask("one", longQuestion)
	c.accept(c.result())
	close(o.release)
	p.eventually("both calls were made", func() bool { return len(p.titleRequests()) == 2 && p.models.InFlight() == 0 })
	c.ask("two", "And then?")
	c.wantTitle(c.result(), "Stuck pods", v1alpha1.TitleFromModel, true)
}

func TestTitlesAreOffByDefaultAndMakeNoRequest(t *testing.T) {
	t.Parallel()
	p := titling(t, entitles(titleOfPods), nil)
	c := p.newChat("plain", nil)
	c.ask("one", longQuestion)
	m := c.result()
	c.wantTitle(m, "Why would a pod be stuck…", v1alpha1.TitleFromFirstWords, false)
	c.accept(m)
	c.ask("two", "And then?")
	c.wantTitle(c.result(), "", "", false)

	if n := len(p.models.Requests()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

func TestNoTitleIsAskedForWhereItIsNotWantedOrCouldBreakABudget(t *testing.T) {
	t.Parallel()
	p := titling(t, entitles(titleOfPods), nil)
	for name, c := range map[string]struct {
		change func(*v1alpha1.ChatSpec)
		title  string
		source v1alpha1.TitleSource
	}{
		"given": {func(s *v1alpha1.ChatSpec) { s.Title = "Mine" }, "", ""},
		"budget": {func(s *v1alpha1.ChatSpec) {
			s.Limits = &v1alpha1.ChatLimits{Budget: &v1alpha1.Budget{Currency: "USD", Amount: "1"}}
		}, "Why would a pod be stuck…", v1alpha1.TitleFromFirstWords},
	} {
		chat := p.newTitledChat(name, c.change)
		chat.ask(name+"-one", longQuestion)
		chat.wantTitle(chat.result(), c.title, c.source, false)
	}
	if n := len(p.titleRequests()); n != 0 {
		t.Errorf("%d titles were asked for", n)
	}
}

func TestACallForATitleEndsWithItsChat(t *testing.T) {
	t.Parallel()
	script := entitles(modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}})
	script.Rules[1].Reply.Fault = &modelserver.Fault{Kind: modelserver.FaultHang}
	p := titling(t, script, nil)
	c := p.newTitledChat("c", nil)
	c.ask("one", longQuestion)
	p.eventually("both calls are under way", func() bool { return p.models.InFlight() == 2 })
	if err := cluster.Client.Delete(t.Context(), c.chat); err != nil {
		t.Fatal(err)
	}
	p.eventually("no call is under way", func() bool { return p.models.InFlight() == 0 })
}

func TestACallForATitleDoesNotHoldUpADrain(t *testing.T) {
	t.Parallel()
	p := titling(t, entitles(modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}), nil)
	c := p.newTitledChat("c", nil)
	c.ask("one", longQuestion)
	c.result()
	p.drain()
	select {
	case <-p.ended:
	case <-time.After(patience / 2): // The call itself may take as long as patience.
		t.Error("the pod waits for the title")
	}
}
