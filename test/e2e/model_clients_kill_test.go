// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
)

// steady is a port of this machine that leads to the gateway whatever becomes of its pods: where there is none, a
// connection waits.
type steady struct {
	w        *world
	listener net.Listener
	serving  sync.WaitGroup

	mu     sync.Mutex
	target string
}

// steadily opens such a port, which leads to the gateway as at does.
func (w *world) steadily(at outside) *steady {
	w.t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check.OK(w.t, err)
	s := &steady{w: w, listener: listener}
	s.leads(at)
	s.serving.Go(s.serve)
	w.t.Cleanup(func() { _ = listener.Close(); s.serving.Wait() })
	return s
}

// outside is where programs find the namespace by that port.
func (s *steady) outside(token string) outside {
	return outside{"http://" + s.listener.Addr().String(), s.w.ns, token}
}

// leads has the port lead where at does.
func (s *steady) leads(at outside) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = strings.TrimPrefix(at.gateway, "http://")
}

// waits has new connections wait until the port leads somewhere again.
func (s *steady) waits() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.target = ""
}

func (s *steady) serve() {
	for {
		from, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() { s.carry(from) })
	}
}

// carry carries a connection until one of its ends is closed, or the test is over.
func (s *steady) carry(from net.Conn) {
	defer func() { _ = from.Close() }()
	for s.w.t.Context().Err() == nil {
		s.mu.Lock()
		target := s.target
		s.mu.Unlock()
		if target == "" {
			<-time.After(50 * time.Millisecond)
			continue
		}
		to, err := net.Dial("tcp4", target)
		if err != nil {
			return
		}
		defer func() { _ = to.Close() }()
		ended := make(chan struct{}, 2)
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			go func() { _, _ = io.Copy(pair[1], pair[0]); ended <- struct{}{} }() // An end of it is why it ends.
		}
		select {
		case <-ended:
		case <-s.w.t.Context().Done():
		}
		return
	}
}

// ran is what became of a program.
type ran struct{ name, said, complained string }

func TestClientsReceiveReplyDespiteManagerAndGatewayKill(t *testing.T) {
	localnode.Needed(t)
	dir := modelClients(t)
	w := newWorld(t, reply(words(storyWords, 2*storyPace)))
	gateways := w.gateways()
	first := w.byGatewayPod(gateways[0])
	port := w.steadily(first)
	at := port.outside(first.token)
	programs := map[string]*exec.Cmd{
		"codex": w.codexCommand(t.TempDir(), at, "--skip-git-repo-check", "Tell me a story, codex.")}
	for _, name := range []string{"responses", "completions", "ai", "anthropic"} {
		program := exec.CommandContext(t.Context(), "node", "again.mjs", name, "Tell me a story, "+name+".")
		program.Dir = dir
		program.Env = append(os.Environ(), "OPENAI_URL="+at.openaiURL(), "ANTHROPIC_URL="+at.anthropicURL(),
			"API_KEY="+at.token)
		programs[name] = program
	}
	ends := make(chan ran, len(programs))
	for name, program := range programs {
		var said, complained bytes.Buffer
		program.Stdout, program.Stderr = &said, &complained
		check.OK(t, program.Start())
		go func() {
			err := program.Wait()
			ends <- ran{name, strings.TrimSpace(said.String()), fmt.Sprintf("%v\n%s", err, complained.String())}
		}()
	}
	w.eventually("every client is answered", func() bool { return len(w.requests()) == len(programs) })
	killManager(t)
	port.waits()
	kill(t, "parley-system", gateways[0], "gateway")
	port.leads(w.byGatewayPod(gateways[1]))
	for range programs {
		if end := <-ends; end.said != strings.TrimSpace(wholeStory()) {
			t.Errorf("%s heard %q: %s", end.name, end.said, end.complained)
		} else if end.name != "codex" && !strings.Contains(end.complained, "lost 1 times") {
			t.Errorf("%s has lost nothing: %s", end.name, end.complained)
		}
	}
	check.Equal(t, "the model was called", len(programs), len(w.requests()))
}

// story is what the model tells, and how often it says something.
const (
	storyWords = 100
	storyPace  = 50 * time.Millisecond
)

// wholeStory is all of it.
func wholeStory() string {
	return strings.Join(words(storyWords, 0).Steps[0].Text.Chunks, "")
}

// askedFor is a request for the story.
func askedFor(background bool) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "default", Background: param.NewOpt(background),
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("Tell me a long story.")}}
}

// heard is what a client has of a streamed response.
type heard struct {
	id   string
	last int64
	text strings.Builder
	over bool
}

// listen takes events until the client has so many bytes of text, or the stream ends.
func (h *heard) listen(stream *ssestream.Stream[responses.ResponseStreamEventUnion], bytes int) error {
	for h.text.Len() < bytes && stream.Next() {
		e := stream.Current()
		h.last = e.SequenceNumber
		switch e := e.AsAny().(type) {
		case responses.ResponseCreatedEvent:
			h.id = e.Response.ID
		case responses.ResponseTextDeltaEvent:
			h.text.WriteString(e.Delta)
		case responses.ResponseCompletedEvent:
			h.over = true
		case responses.ResponseErrorEvent:
			return fmt.Errorf("%s: %s", e.Code, e.Message)
		}
	}
	return stream.Err()
}

const all = 1 << 20

func TestAStreamedResponseOutlivesTheManager(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, reply(words(storyWords, storyPace)))
	client := w.byGateway().byOpenAI()
	stream := client.Responses.NewStreaming(t.Context(), askedFor(false))
	var h heard
	check.OK(t, h.listen(stream, 20))
	killManager(t)
	if err := h.listen(stream, all); err != nil || !h.over || h.text.String() != wholeStory() {
		t.Errorf("heard was %q, %v", h.text.String(), err)
	}
	check.Equal(t, "calls of the model", 1, len(w.requests()))
}

func TestStreamedResponseResumesFromAnotherGateway(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, reply(words(storyWords, storyPace)))
	gateways := w.gateways()
	client := w.byGatewayPod(gateways[0]).byOpenAI()
	var h heard
	check.OK(t, h.listen(client.Responses.NewStreaming(t.Context(), askedFor(false)), 20))
	kill(t, "parley-system", gateways[0], "gateway")
	client = w.byGatewayPod(gateways[1]).byOpenAI()
	rest := client.Responses.GetStreaming(t.Context(), h.id,
		responses.ResponseGetParams{StartingAfter: param.NewOpt(h.last)})
	if err := h.listen(rest, all); err != nil || !h.over || h.text.String() != wholeStory() {
		t.Errorf("heard was %q, %v", h.text.String(), err)
	}
	found, err := client.Responses.Get(t.Context(), h.id, responses.ResponseGetParams{})
	if err != nil || found.OutputText() != wholeStory() || found.Status != "completed" {
		t.Errorf("found is %v, %v", found, err)
	}
	check.Equal(t, "calls of the model", 1, len(w.requests()))
}

func TestStreamedCompletionSurvivesLostAttempt(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, reply(words(storyWords, storyPace)))
	client := w.byGateway().byOpenAI()
	stream := client.Chat.Completions.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "default",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Tell me a long story.")}},
		option.WithHeader("X-Parley-Chat", "c"))
	var told openai.ChatCompletionAccumulator
	killed := false
	for stream.Next() {
		told.AddChunk(stream.Current())
		if !killed && len(told.Choices[0].Message.Content) > 20 {
			kill(t, w.ns, w.chat("c").Status.Generation.Pod, "generator")
			killed = true
		}
	}
	if stream.Err() != nil || !killed || told.Choices[0].Message.Content != wholeStory() {
		t.Errorf("told was %+v, %v", told.ChatCompletion, stream.Err())
	}
}

func TestRetriedRequestReturnsReplyOfFirst(t *testing.T) {
	w := newWorld(t, reply(words(20, storyPace)))
	client := w.byGateway().byOpenAI()
	for name, headers := range map[string][2]option.RequestOption{
		"by its key": {option.WithHeader("Idempotency-Key", "k-1"), option.WithHeader("Idempotency-Key", "k-1")},
		"by the client's count": {option.WithHeader("X-Stainless-Retry-Count", "0"),
			option.WithHeader("X-Stainless-Retry-Count", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			w.script(reply(words(20, storyPace)))
			ids := map[string]string{}
			for _, header := range headers {
				ask := askedFor(false)
				ask.Input.OfString = param.NewOpt(name)
				answer, err := client.Responses.New(t.Context(), ask, header)
				check.OK(t, err)
				ids[answer.ID] = answer.OutputText()
			}
			if len(ids) != 1 || len(w.requests()) != 1 {
				t.Errorf("the answers are %v, of %d calls of the model", ids, len(w.requests()))
			}
		})
	}
}
