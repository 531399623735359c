// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/follow"
)

type sendOptions struct {
	noFollow bool
	timeout  time.Duration
}

func newSend(o *options) *cobra.Command {
	var so sendOptions
	cmd := &cobra.Command{
		Use:     "send CHAT TEXT...",
		Short:   "Send a message to a chat and show the reply, as the model says it",
		Long:    "Creates a ChatMessage and shows the reply, as the model says it. TEXT - reads the message from standard input. Ends with 0 when the message was answered, with 1 when it failed or was rejected.",
		Example: "  kubectl chat send triage \"And how do I tell it is the CNI?\"\n  kubectl logs web-0 | kubectl chat send triage -",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args[1:], " ")
			if text == "-" {
				all, err := io.ReadAll(o.In)
				if err != nil {
					return fmt.Errorf("reading the message from standard input: %w", err)
				}
				text = string(all)
			}
			s, err := o.connect()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), so.timeout)
			defer cancel()
			return s.send(ctx, args[0], text, so)
		},
	}
	cmd.Flags().BoolVar(&so.noFollow, "no-follow", false, "do not wait for the reply; print the message's name")
	cmd.Flags().DurationVar(&so.timeout, "timeout", time.Hour, "how long to wait for the reply")
	return cmd
}

func (s *session) send(ctx context.Context, chat, text string, so sendOptions) error {
	if err := s.checkChat(ctx, chat); err != nil {
		return err
	}
	if so.noFollow {
		m, err := s.create(ctx, chat, text)
		if err != nil {
			return err
		}
		fmt.Fprintf(s.options.Out, "chatmessage.parley.dev/%s created\n", m.Name)
		return nil
	}
	g, err := s.dial(ctx)
	if errors.Is(err, errNoToken) {
		fmt.Fprintf(s.options.ErrOut, "%v, so the reply is shown when it is whole. To watch it come, use a kubeconfig with a token, or name a service account that may get chats/stream with --service-account.\n", err)
		return s.sendUnheard(ctx, chat, text)
	}
	if err != nil {
		return err
	}
	defer g.close()
	return s.sendAndFollow(ctx, g, chat, text)
}

// sendAndFollow opens the stream first, so that nothing of the reply can be missed, and then creates the message.
func (s *session) sendAndFollow(ctx context.Context, g *gateway, chat, text string) error {
	f := &following{printer: newPrinter(s.options.Out, s.options.ErrOut, s.options.output == "json")}
	following, stop := context.WithCancel(ctx)
	defer stop()
	connected := make(chan struct{})
	streamed := make(chan error, 1)
	var once sync.Once
	go func() {
		streamed <- g.follow(following, s.namespace, chat, false, func() { once.Do(func() { close(connected) }) }, f.event)
	}()
	select {
	case <-connected:
	case err := <-streamed:
		return err
	}
	m, err := s.create(ctx, chat, text)
	if err != nil {
		return err
	}
	f.begin(m.Name)
	verdict := make(chan error, 1)
	go func() { verdict <- s.settled(following, m.Name) }()
	select {
	case err := <-streamed:
		if err != nil {
			return err
		}
		return <-verdict
	case err := <-verdict:
		if err == nil {
			// The turn is over; what the stream still has of it is on its way.
			select {
			case err = <-streamed:
			case <-time.After(5 * time.Second):
			}
		}
		f.printer.endLine()
		return err
	}
}

// following shows the turn of one message.
type following struct {
	printer *printer
	mu      sync.Mutex
	message string
	// early are the events that came before the message's name was known.
	early []event
	began bool
	ended bool
}

// begin tells the name of the message.
func (f *following) begin(message string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.message = message
	for _, e := range f.early {
		if done, err := f.show(e); done || err != nil {
			break
		}
	}
	f.early = nil
}

// event shows an event of the message's own turn, and ends with that.
func (f *following) event(e event) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.message == "" {
		f.early = append(f.early, e)
		return false, nil
	}
	return f.show(e)
}

// show handles an event in its order. The caller holds mu.
func (f *following) show(e event) (bool, error) {
	if e.name == follow.EventDeleted {
		return true, errors.New("the chat was deleted")
	}
	if e.name == follow.EventStatus && !f.ended {
		if err := f.status(e.data); err != nil {
			return true, err
		}
	}
	if f.ended || !f.began && !f.printer.json {
		return f.ended, nil
	}
	return false, f.printer.show(e, false)
}

// status finds out whether the message's turn has begun or ended.
func (f *following) status(data []byte) error {
	var status struct {
		Turn  string `json:"turn"`
		Ready string `json:"ready"`
	}
	if err := json.Unmarshal(data, &status); err != nil {
		return fmt.Errorf("reading a status: %w", err)
	}
	mine := status.Turn == f.message
	f.ended = f.began && !mine || mine && status.Ready != "Unknown"
	f.began = f.began || mine
	return nil
}

func (s *session) create(ctx context.Context, chat, text string) (*v1alpha1.ChatMessage, error) {
	m, err := s.parley.Messages(s.namespace).Create(ctx, &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{GenerateName: chat + "-", Namespace: s.namespace},
		Spec:       v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: chat}, Role: v1alpha1.RoleUser, Content: text},
	})
	if err != nil {
		return nil, fmt.Errorf("creating the message: %w", err)
	}
	return m, nil
}
