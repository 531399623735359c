// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/modelserver"
)

// quiet is how long nothing may change once nothing goes on.
const quiet = 5 * time.Second

// state is everything that is there at the end.
type state struct {
	questions []*question
	chats     []v1beta1.Chat
	messages  []v1beta1.ChatMessage
	pods      []corev1.Pod
	calls     []call
	// settled is how long it took to come to rest.
	settled time.Duration
}

// call is what the model says of a request, without its body.
type call struct {
	Rule         string               `json:"rule"`
	Status       int                  `json:"status"`
	Conversation string               `json:"conversation"`
	Aborted      bool                 `json:"aborted"`
	Protocol     modelserver.Protocol `json:"protocol"`
	Arrived      time.Time            `json:"arrived"`
}

// rest waits until the system has come to rest and reads what is there then. What does not come to rest is a problem.
func (w *world) rest(ctx context.Context, l *ledger) (*state, []string) {
	began := time.Now()
	s := &state{}
	var problems []string
	for _, stage := range []struct {
		name  string
		holds func() error
	}{
		{"all chats are idle and all messages answered", s.idle},
		{"nothing is left over", s.tidy},
	} {
		s.questions = l.all()
		err := untilEvery(ctx, time.Second, w.settle, func(ctx context.Context) error {
			// Reading everything again and again would be the heaviest load of all.
			if open := len(s.questions) - l.answered(); open > 0 && time.Since(began) < w.settle-20*time.Second {
				return fmt.Errorf("%d messages are not answered", open)
			}
			if err := w.read(ctx, s); err != nil {
				return err
			}
			return stage.holds()
		})
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", stage.name, err))
		}
		w.log.Info("waited until "+stage.name, "took", time.Since(began).Round(100*time.Millisecond), "error", err)
	}
	s.settled = time.Since(began)
	before := s.versions()
	if pause(ctx, quiet); ctx.Err() == nil {
		if err := until(ctx, time.Minute, func(ctx context.Context) error { return w.read(ctx, s) }); err != nil {
			problems = append(problems, err.Error())
		}
	}
	for name, version := range s.versions() {
		if before[name] != version {
			problems = append(problems, fmt.Sprintf("%s is still being written: %s, then %s", name, before[name], version))
		}
	}
	return s, problems
}

func (w *world) read(ctx context.Context, s *state) error {
	var chats v1beta1.ChatList
	var messages v1beta1.ChatMessageList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&chats, &messages} {
		if err := w.client.List(ctx, list, client.InNamespace(w.ns)); err != nil {
			return fmt.Errorf("reading what is there: %w", err)
		}
	}
	if err := w.client.List(ctx, &pods, client.InNamespace(w.ns),
		client.MatchingLabels{podspec.LabelComponent: podspec.ComponentGeneration}); err != nil {
		return fmt.Errorf("reading what is there: %w", err)
	}
	s.chats, s.messages, s.pods = chats.Items, messages.Items, pods.Items
	return nil
}

// idle says what is not idle yet, or nil. A chat in Error is: it waits for a person,
// and that it does is found in the end.
func (s *state) idle() error {
	var waiting []error
	for i := range s.chats {
		c := &s.chats[i]
		if c.Status.Phase != v1beta1.ChatError && (c.Status.Phase != v1beta1.ChatWaiting || len(c.Status.Queue) > 0 ||
			!meta.IsStatusConditionTrue(c.Status.Conditions, v1beta1.ConditionReady)) {
			waiting = append(waiting, fmt.Errorf("chat %s is %s, %d queued, %s", c.Name, c.Status.Phase, len(c.Status.Queue),
				readyOf(c.Status.Conditions)))
		}
	}
	for i := range s.messages {
		if m := &s.messages[i]; m.Spec.Generation == nil && !isSettled(m) {
			waiting = append(waiting, fmt.Errorf("message %s is %s, %s", m.Name, m.Status.State, readyOf(m.Status.Conditions)))
		}
	}
	return few(waiting)
}

// tidy says what is left over, or nil.
func (s *state) tidy() error {
	known := map[string]bool{}
	var left []error
	for i := range s.chats {
		for _, name := range s.chain(s.chats[i].Name) {
			known[name] = true
		}
		if s.chats[i].DeletionTimestamp != nil {
			left = append(left, fmt.Errorf("chat %s is being deleted", s.chats[i].Name))
		}
	}
	for i := range s.messages {
		if m := &s.messages[i]; !known[m.Name] {
			left = append(left, fmt.Errorf("message %s is in no history: %s", m.Name, outcome(m)))
		}
	}
	for i := range s.pods {
		if p := &s.pods[i]; p.DeletionTimestamp != nil || !isReady(p) {
			left = append(left, fmt.Errorf("generation pod %s is %s, being deleted since %v", p.Name, p.Status.Phase,
				p.DeletionTimestamp))
		}
	}
	return few(left)
}

func outcome(m *v1beta1.ChatMessage) string {
	if m.Spec.Generation == nil {
		return string(m.Status.State)
	}
	return string(m.Spec.Generation.Outcome)
}

// few joins the first of many errors.
func few(all []error) error {
	const most = 8
	if len(all) > most {
		all = append(all[:most], fmt.Errorf("and %d more", len(all)-most))
	}
	return errors.Join(all...)
}

func readyOf(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
	if c == nil {
		return "without a Ready condition"
	}
	return fmt.Sprintf("Ready %s %s %s", c.Status, c.Reason, c.Message)
}

// versions is which write of each object is there.
func (s *state) versions() map[string]string {
	all := map[string]string{}
	for i := range s.chats {
		all["chat "+s.chats[i].Name] = s.chats[i].ResourceVersion
	}
	for i := range s.messages {
		all["message "+s.messages[i].Name] = s.messages[i].ResourceVersion
	}
	return all
}

// calls asks the model for what it was asked.
func (w *world) calls(ctx context.Context) ([]call, error) {
	body, err := w.control("GET", "requests").Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("asking the model for its requests: %w", err)
	}
	defer body.Close()
	var all []call
	if err := json.NewDecoder(body).Decode(&all); err != nil {
		return nil, fmt.Errorf("asking the model for its requests: %w", err)
	}
	return all, nil
}

// keepLogs writes the logs of a pod that is about to be killed to the folder. Logs that cannot be had are not worth a
// word: the container may not have begun.
func (w *world) keepLogs(ctx context.Context, pod *corev1.Pod) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		for _, previous := range []bool{true, false} {
			raw, err := w.core.CoreV1().Pods(pod.Namespace).
				GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, Previous: previous, Timestamps: true}).DoRaw(ctx)
			if err != nil || len(raw) == 0 {
				continue
			}
			name := fmt.Sprintf("%s-%s-%s.log", time.Now().UTC().Format("150405"), pod.Name, container.Name)
			if previous {
				name += ".previous"
			}
			if err := w.write(name, raw); err != nil {
				w.log.Info("a log could not be kept", "because", err)
			}
		}
	}
}

// keep writes what was found at the end, and the logs of all that runs, for whoever looks for the reason. The namespace
// stays as it is.
func (w *world) keep(ctx context.Context, end *state) error {
	raw, err := json.MarshalIndent(map[string]any{"chats": end.chats, "messages": end.messages, "pods": end.pods,
		"calls": end.calls}, "", " ")
	if err != nil {
		return fmt.Errorf("writing what was found: %w", err)
	}
	if err := w.write("state.json", raw); err != nil {
		return err
	}
	for _, ns := range []string{systemNamespace, w.ns} {
		pods, err := w.core.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("looking for logs: %w", err)
		}
		for i := range pods.Items {
			w.keepLogs(ctx, &pods.Items[i])
		}
	}
	w.log.Info("what was found, and the logs, are kept", "folder", w.out, "namespace", w.ns)
	return nil
}

func (w *world) write(name string, raw []byte) error {
	if err := errors.Join(os.MkdirAll(w.out, 0o755), os.WriteFile(filepath.Join(w.out, name), raw, 0o644)); err != nil {
		return fmt.Errorf("keeping %s: %w", name, err)
	}
	return nil
}
