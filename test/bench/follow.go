// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
)

// running is a chat that has an attempt, and when that was first seen.
type running struct {
	status *v1beta1.ChatStatus
	seen   time.Time
}

// followers wakes those who wait for chats, from one watch.
type followers struct {
	mu    sync.Mutex
	chats map[string]*v1beta1.Chat
	// running holds each chat as it was when it was last seen to have got an attempt.
	running map[string]running
	bell    chan struct{}
}

func followChats(ctx context.Context, c *apiclient.Client) (*followers, error) {
	f := &followers{chats: map[string]*v1beta1.Chat{}, running: map[string]running{}, bell: make(chan struct{})}
	informer := cache.NewSharedIndexInformer(c.Chats(namespace).ListerWatcher(""), &v1beta1.Chat{}, 0, nil)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: f.see, UpdateFunc: func(_, o any) { f.see(o) },
	}); err != nil {
		return nil, fmt.Errorf("watching chats: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitFor(ctx, "", informer.HasSyncedChecker()) {
		return nil, ctx.Err()
	}
	return f, nil
}

func (f *followers) see(o any) {
	chat, ok := o.(*v1beta1.Chat)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chats[chat.Name] = chat
	if g := chat.Status.Generation; g != nil {
		if before := f.running[chat.Name].status; before == nil || before.History.Version != chat.Status.History.Version ||
			before.Generation.Attempt != g.Attempt {
			f.running[chat.Name] = running{&chat.Status, time.Now()}
		}
	}
	close(f.bell)
	f.bell = make(chan struct{})
}

// lastRunning is the chat as it was when it was last seen to have got an attempt.
func (f *followers) lastRunning(name string) running {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.running[name]
	return running{r.status.DeepCopy(), r.seen}
}

// until waits for the condition of all chats together.
func (f *followers) until(ctx context.Context, holds func(chats map[string]*v1beta1.Chat) bool) error {
	for {
		f.mu.Lock()
		ok, bell := holds(f.chats), f.bell
		f.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-bell:
		case <-time.After(2 * time.Minute):
			return fmt.Errorf("waited in vain: no chat changed for two minutes")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// answered waits until the chat is idle with so many messages.
func (f *followers) answered(ctx context.Context, name string, length int64) error {
	return f.until(ctx, func(chats map[string]*v1beta1.Chat) bool { return isAnswered(chats[name], length) })
}

func isAnswered(chat *v1beta1.Chat, length int64) bool {
	return chat != nil && chat.Status.Phase == v1beta1.ChatWaiting && chat.Status.History.Length >= length
}

// part is a part of a reply as a client of the gateway sees it, and when; or all of it, if it was committed before the
// gateway had its parts.
type part struct {
	at time.Time
	// kind of the part; kindReply for all of a reply.
	kind string
	// v is the version of the history that the reply builds on.
	v int64
	// bytes of its text.
	bytes int
}

const kindReply = "Reply"

// stream follows a chat at the gateway, from now on. It returns once the gateway has begun to answer.
func (b *bench) stream(ctx context.Context, chat string) (<-chan part, error) {
	url := fmt.Sprintf("%s/v1beta1/namespaces/%s/chats/%s/stream?from=now", b.gateway, namespace, chat)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("following chat %s: %w", chat, err)
	}
	request.Header.Set("Authorization", "Bearer "+b.token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("following chat %s: %w", chat, err)
	}
	body := response.Body
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("following chat %s: %s", chat, response.Status), body.Close())
	}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 4<<20)
	seen := make(chan part, 1024)
	ready := make(chan struct{})
	go func() {
		defer close(seen)
		defer body.Close()
		readEvents(lines, ready, seen)
	}()
	select {
	case <-ready:
		return seen, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// readEvents hands on the parts; ready is closed by the first status, which follows the committed state.
func readEvents(lines *bufio.Scanner, ready chan struct{}, seen chan<- part) {
	event, announced := "", false
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		switch {
		case event == "status" && !announced:
			announced = true
			close(ready)
		case event == "message_part", event == "message":
			if p, ok := partOf(data); ok {
				seen <- p
			}
		}
	}
}

// partOf reads the data of a message_part, or of a message that is a reply.
func partOf(data string) (part, bool) {
	at := time.Now()
	var p struct {
		HistoryVersion int64 `json:"historyVersion"`
		Part           *struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"part"`
		Message struct {
			Role v1beta1.MessageRole `json:"role"`
		} `json:"message"`
	}
	switch err := json.Unmarshal([]byte(data), &p); {
	case err != nil:
		return part{}, false
	case p.Part != nil:
		return part{at: at, kind: p.Part.Type, v: p.HistoryVersion, bytes: len(p.Part.Text)}, true
	}
	return part{at: at, kind: kindReply, v: p.HistoryVersion - 1}, p.Message.Role == v1beta1.RoleAssistant
}
