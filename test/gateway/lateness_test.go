// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/test/kit/waiting"
)

const (
	// clients follow chats, each with a connection of its own; callers have them.
	clients, callers = 1000, 20
	// chatsOfPod is how many chats a generation pod has at work.
	chatsOfPod = 100
	// warmUp is how long chats stream before lateness counts.
	warmUp = 3 * time.Second
)

// latenessFigures are those of BenchmarkLateness.
type latenessFigures struct {
	Streams int `json:"streams"`
	Chats   int `json:"chats"`
	// Readers are the streams out of all relays.
	Readers int64 `json:"relay_streams"`
	// Late is how long after its publishing by the generator a part is read by a client, in milliseconds.
	LateP50 float64 `json:"late_p50_ms"`
	LateP99 float64 `json:"late_p99_ms"`
	LateMax float64 `json:"late_max_ms"`
	// Parts that came to clients in a second, of all that were said to them.
	Parts float64 `json:"parts_per_s"`
	Said  float64 `json:"said_parts_per_s"`
	// CPU of the gateway in shares of one processor, and what a stream and a part that comes to a client cost of it.
	CPU       float64 `json:"gateway_cpu"`
	StreamCPU float64 `json:"gateway_cpu_per_1000_streams"`
	PartCPU   float64 `json:"gateway_cpu_us_per_part"`
	// RSS of the gateway in MiB, and KiB that a stream adds to it, while chats generate.
	MiB float64 `json:"gateway_rss_mib"`
	KiB float64 `json:"gateway_rss_kib_per_stream"`
}

// BenchmarkLateness measures how late parts come to 1000 clients, of which each chat says 20 a second: all of one chat,
// and one of each of 1000 chats on ten generation pods. Publishers, relays and clients are one process, and the gateway
// is another; all of them share the machine.
func BenchmarkLateness(b *testing.B) {
	for _, test := range []struct {
		name   string
		chats  int
		figure **latenessFigures
	}{{"one-chat", 1, &figures.OneChat}, {"many-chats", clients, &figures.ManyChats}} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				f := measureLateness(b, test.chats)
				*test.figure = &f
			}
			f := *test.figure
			for unit, v := range map[string]float64{"late-p50-ms": f.LateP50, "late-p99-ms": f.LateP99, "cpu": f.CPU,
				"late-max-ms": f.LateMax, "cpu-us/part": f.PartCPU, "KiB/stream": f.KiB, "parts/s": f.Parts, "said/s": f.Said,
				"relay-streams": float64(f.Readers)} {
				b.ReportMetric(v, unit)
			}
			publishFigures(b)
		})
	}
}

func measureLateness(b *testing.B, chats int) latenessFigures {
	w := newWorldOf(b, max(1, chats/chatsOfPod))
	stories := w.tellMany(chats)
	before := w.gateway.Memory()
	h := w.hear(b, stories)
	said, stop := w.generate(b, stories)
	<-time.After(warmUp)

	h.late.reset()
	saidBefore, came := said.Load(), h.late.count.Load()
	f := latenessFigures{Streams: clients, Chats: chats, CPU: w.cpu(b)}
	came, saidMeanwhile := h.late.count.Load()-came, said.Load()-saidBefore
	f.LateP50, f.LateP99, f.LateMax = h.late.quantile(0.5), h.late.quantile(0.99), h.late.quantile(1)
	f.Parts = float64(came) / window.Seconds()
	f.Said = float64(saidMeanwhile) / window.Seconds() * clients / float64(chats)
	f.StreamCPU, f.PartCPU = f.CPU*1000/clients, f.CPU*1e6/f.Parts
	memory := w.gateway.Memory()
	f.MiB, f.KiB = mebibytes(memory), float64(memory-before)/1024/clients
	for _, p := range w.pods {
		f.Readers += p.relay.Subscribers.Streams()
	}
	stop()
	h.end()
	return f
}

// tellMany begins so many chats, several at a time, on all pods in turn.
func (w *world) tellMany(chats int) []*story {
	w.t.Helper()
	stories := make([]*story, chats)
	atOnce(chats, func(i int) {
		stories[i] = w.tell(fmt.Sprintf("c-%d", i), 2)
		stories[i].pod = w.pods[i%len(w.pods)]
	})
	return stories
}

// atOnce does something n times, 16 at a time.
func atOnce(n int, do func(i int)) {
	next := make(chan int)
	var doing sync.WaitGroup
	for range 16 {
		doing.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	doing.Wait()
}

// generate lets all chats stream parts whose text is when they were published, until stop is called. It counts
// them.
func (w *world) generate(b *testing.B, stories []*story) (said *atomic.Int64, stop func()) {
	b.Helper()
	episodes := make([]*publish.Episode, len(stories))
	atOnce(len(stories), func(i int) {
		write(b, []*v1beta1.ChatMessage{stories[i].question("And now?")})
		episodes[i] = stories[i].attempt()
	})
	said = &atomic.Int64{}
	stop = say(b, episodes, func(episode *publish.Episode) {
		episode.Publish("Assistant", parts.Part{Type: parts.Text, ID: "0", Text: stamp()})
		said.Add(1)
	})
	return said, stop
}

// epoch is what stamps count from, by the clock that only goes on.
var epoch = time.Now()

// stamp is now, as the text of a part: nanoseconds and a blank.
func stamp() string { return strconv.FormatInt(int64(time.Since(epoch)), 10) + " " }

// stampedText is how the text of a part begins in an event.
var stampedText = []byte(`"text":"`)

// lateOf is how late a line of a stream comes, if it has a stamped part.
func lateOf(line []byte) (late time.Duration, stamped bool) {
	_, text, found := bytes.Cut(line, stampedText)
	digits, _, blank := bytes.Cut(text, []byte(" "))
	if !found || !blank {
		return 0, false
	}
	at, err := strconv.ParseInt(string(digits), 10, 64)
	return time.Since(epoch) - time.Duration(at), err == nil
}

// lateness counts durations in steps of a tenth of a millisecond, up to ten seconds.
type lateness struct {
	count atomic.Int64
	steps [100_000]atomic.Int64
}

const latenessStep = 100 * time.Microsecond

func (l *lateness) add(d time.Duration) {
	l.count.Add(1)
	l.steps[min(max(0, int(d/latenessStep)), len(l.steps)-1)].Add(1)
}

func (l *lateness) reset() {
	for i := range l.steps {
		l.steps[i].Store(0)
	}
}

// quantile is the duration in milliseconds that a share of all do not exceed.
func (l *lateness) quantile(share float64) float64 {
	var all, sum int64
	for i := range l.steps {
		all += l.steps[i].Load()
	}
	for i := range l.steps {
		if sum += l.steps[i].Load(); sum > 0 && float64(sum) >= share*float64(all) {
			return float64(i+1) * latenessStep.Seconds() * 1000
		}
	}
	return 0
}

// hearers are clients that cost as little as can be: a connection and a goroutine each.
type hearers struct {
	late  lateness
	whole atomic.Int64
	end   func()
}

// hear lets the clients follow the chats in turn, and waits until all were told what there was.
func (w *world) hear(b *testing.B, stories []*story) *hearers {
	b.Helper()
	h := &hearers{}
	var listening sync.WaitGroup
	tokens, conns := make([]string, callers), make([]net.Conn, clients)
	for i := range tokens {
		tokens[i] = w.person(fmt.Sprintf("person-%d", i), "parley-chat-user")
	}
	h.end = sync.OnceFunc(func() {
		for _, conn := range conns {
			if conn != nil {
				_ = conn.Close() // It ends what listens.
			}
		}
		listening.Wait()
	})
	b.Cleanup(h.end)
	atOnce(clients, func(i int) {
		conn, answer, err := w.request(b, stories[i%len(stories)].chat.Name, tokens[i%callers])
		if err != nil {
			b.Error(err)
			return
		}
		conns[i] = conn
		listening.Go(func() { h.listen(b, answer) })
	})
	waiting.Until(b, 2*time.Minute, "all streams have told what there was", func() bool {
		return b.Failed() || h.whole.Load() == clients
	})
	if b.Failed() {
		b.FailNow()
	}
	return h
}

// request asks for the stream of a chat over a connection of its own, and reads the header of the answer.
func (w *world) request(b *testing.B, chat, token string) (net.Conn, *bufio.Reader, error) {
	b.Helper()
	address := strings.TrimPrefix(w.gateway.URL, "http://")
	conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", address)
	if err != nil {
		return nil, nil, err
	}
	if _, err := fmt.Fprintf(conn, "GET /v1beta1/namespaces/%s/chats/%s/stream?last=10 HTTP/1.1\r\nHost: %s\r\n"+
		"Authorization: Bearer %s\r\n\r\n", w.namespace, chat, address, token); err != nil {
		return conn, nil, err
	}
	answer := bufio.NewReaderSize(conn, 2<<10)
	for line := ""; line != "\r\n"; {
		if line, err = answer.ReadString('\n'); err != nil {
			return conn, nil, err
		}
		if strings.HasPrefix(line, "HTTP/1.1 ") && !strings.Contains(line, " 200 ") {
			return conn, nil, fmt.Errorf("a stream is refused: %s", line)
		}
	}
	return conn, answer, nil
}

// listen reads a stream to its end.
func (h *hearers) listen(b *testing.B, answer *bufio.Reader) {
	lines := bufio.NewReaderSize(httputil.NewChunkedReader(answer), 2<<10)
	for whole := false; ; {
		line, err := lines.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			if !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrUnexpectedEOF) {
				b.Errorf("a stream ended: %v", err)
			}
			return
		}
		if late, stamped := lateOf(line); stamped {
			h.late.add(late)
		} else if !whole && bytes.HasPrefix(line, []byte("event: status")) {
			whole = true
			h.whole.Add(1)
		}
	}
}
