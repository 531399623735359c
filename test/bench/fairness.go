// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
)

// Fairness is what one chat has to bear from many others of another namespace, each of which gets its next message as
// soon as it has answered the last one.
type Fairness struct {
	Busy          int         `json:"busy_chats"`
	BusyPerSecond float64     `json:"busy_turns_per_s"`
	FirstPart     Percentiles `json:"first_part_ms"`
	Turn          Percentiles `json:"turn_ms"`
	// The shares are of the same percentile without the others, right before.
	FirstPartShare Percentiles `json:"first_part_share_of_idle"`
	TurnShare      Percentiles `json:"turn_share_of_idle"`
	// CreateShare is that of the create of the message alone: what the API server and the machine have to bear.
	CreateShare Percentiles `json:"create_share_of_idle"`
}

func (p Percentiles) shareOf(o Percentiles) Percentiles {
	return Percentiles{p.P50 / o.P50, p.P95 / o.P95}
}

// fair measures the chat warm, first alone and then beside the busy ones.
func (b *bench) fair(ctx context.Context, f *Fairness, of sizes) error {
	f.Busy = of.busy
	few := func(done int) bool { return done == of.turns }
	idle, err := b.turnsOf(ctx, few)
	if err != nil {
		return err
	}
	crowd, err := b.newCrowd(ctx, of.busy)
	if err != nil {
		return err
	}
	crowded, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- crowd.talk(crowded) }()
	if err := crowd.warmUp(ctx); err != nil {
		return err
	}
	began, before := time.Now(), crowd.answers.Load()
	beside, err := b.turnsOf(ctx, few)
	f.BusyPerSecond = float64(crowd.answers.Load()-before) / time.Since(began).Seconds()
	stop()
	if failed := <-ended; err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	first, turn := idle.percentiles()
	f.FirstPart, f.Turn = beside.percentiles()
	f.FirstPartShare, f.TurnShare = f.FirstPart.shareOf(first), f.Turn.shareOf(turn)
	f.CreateShare = beside.creates().shareOf(idle.creates())
	return nil
}

// crowd is a namespace of chats that are always busy, and somebody of its own who talks to them: an API server shares
// itself out between those who ask it.
type crowd struct {
	config    *rest.Config
	client    client.Client
	namespace string
	chats     int
	answers   atomic.Int64
	// free are the chats that have answered, with the length of their history.
	free chan chatAt
}

type chatAt struct {
	name   string
	length int64
}

// newCrowd creates the chats, which have nothing to answer yet.
func (b *bench) newCrowd(ctx context.Context, chats int) (*crowd, error) {
	own := further("busy")
	c := &crowd{namespace: own.Name, chats: chats, free: make(chan chatAt, chats)}
	in := metav1.ObjectMeta{Namespace: own.Name, Name: "crowd"}
	for _, o := range []client.Object{own, b.modelConfig(own.Name), &corev1.ServiceAccount{ObjectMeta: in},
		&rbacv1.RoleBinding{ObjectMeta: in,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in.Namespace, Name: in.Name}}}} {
		if err := b.create(ctx, o); err != nil {
			return nil, err
		}
	}
	token, err := b.tokenOf(ctx, in.Namespace, in.Name)
	if err != nil {
		return nil, err
	}
	c.config = rest.AnonymousClientConfig(b.config)
	c.config.BearerToken, c.config.QPS = token, -1
	if c.client, err = client.New(c.config, client.Options{Scheme: b.client.Scheme()}); err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return c, some(ctx, chats, func(ctx context.Context, i int) error {
		return b.create(ctx, chattest.In(c.namespace, chattest.Chat(fmt.Sprint("busy-", i))))
	})
}

// talk says the next message to each chat that has answered, until the context is done.
func (c *crowd) talk(ctx context.Context) error {
	parley, err := apiclient.New(c.config, "parley-bench-crowd")
	if err != nil {
		return err
	}
	informer := cache.NewSharedIndexInformer(parley.Chats(c.namespace).ListerWatcher(""), &v1beta1.Chat{}, 0, nil)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		old, ok := before.(*v1beta1.Chat)
		chat, also := after.(*v1beta1.Chat)
		if ok && also && isAnswered(chat, old.Status.History.Length+1) {
			c.answers.Add(1)
			c.free <- chatAt{chat.Name, chat.Status.History.Length}
		}
	}}); err != nil {
		return fmt.Errorf("watching chats: %w", err)
	}
	for i := range c.chats {
		c.free <- chatAt{fmt.Sprint("busy-", i), 0}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { informer.RunWithContext(ctx); return nil })
	for range c.chats {
		group.Go(func() error { return c.say(ctx) })
	}
	return group.Wait()
}

func (c *crowd) say(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case chat := <-c.free:
			err := c.client.Create(ctx, question(c.namespace, chat.name, fmt.Sprintf("%s-m%d", chat.name, chat.length)))
			if err != nil && ctx.Err() == nil {
				return fmt.Errorf("asking a busy chat: %w", err)
			}
		}
	}
}

// warmUp waits until the chats have answered twice each: they have their pods then.
func (c *crowd) warmUp(ctx context.Context) error {
	patience, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("the busy chats do not answer"))
	defer cancel()
	for c.answers.Load() < 2*int64(c.chats) {
		select {
		case <-patience.Done():
			return context.Cause(patience)
		case <-time.After(look):
		}
	}
	return nil
}
