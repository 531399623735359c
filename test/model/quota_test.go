// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/model/reference"
)

// unset is the number of a quota that leaves it to others.
const unset = "any"

// quotaVerbs are what people do with the quotas of the namespace, and with the other chats in it. "peer" and a name are
// before whatever they do to such a chat.
var quotaVerbs = map[string]verb{
	"meet": {
		able: func(c *reference.Chat, o operation) bool {
			return c.Name == "" && o.arg(0) != "" && c.Peer(o.arg(0)) == nil
		},
		model: func(c *reference.Chat, o operation) {
			peer := reference.New(limitsOf(o))
			c.Meet(o.arg(0), peer)
			begins(peer, o)
		},
		real: func(ctx context.Context, d *driver, o operation) error { return d.meet(ctx, o) },
	},
	"peer": {
		able: func(c *reference.Chat, o operation) bool {
			return c.Peer(o.arg(0)) != nil && possible(c.Peer(o.arg(0)), inner(inner(o)))
		},
		model: func(c *reference.Chat, o operation) {
			does := inner(inner(o))
			verbs[does.verb].model(c.Peer(o.arg(0)), does)
		},
		real: func(ctx context.Context, d *driver, o operation) error {
			does := inner(inner(o))
			return verbs[does.verb].real(ctx, d.peers[o.arg(0)], does)
		},
	},
	"quota": {
		able: func(c *reference.Chat, o operation) bool {
			one := *managersFlag == 1 // Several at once may exceed a limit for a moment.
			return one && c.Name == "" && !c.HasBudget() && c.HasModel() && len(o.args) == 3 &&
				(o.arg(1) != unset || o.arg(2) != unset)
		},
		model: func(c *reference.Chat, o operation) { c.SetQuota(o.arg(0), countsOf(o)) },
		real:  func(ctx context.Context, d *driver, o operation) error { return d.setQuota(ctx, o) },
	},
	"unquota": {
		able:  func(c *reference.Chat, o operation) bool { return c.Name == "" && c.HasQuota(o.arg(0)) },
		model: func(c *reference.Chat, o operation) { c.DeleteQuota(o.arg(0)) },
		real:  func(ctx context.Context, d *driver, o operation) error { return d.deleteQuota(ctx, o.arg(0)) },
	},
}

// look is the time between two looks at whether a quota is in force.
const look = 20 * time.Millisecond

// countsOf are the numbers of a quota.
func countsOf(o operation) reference.Counts {
	return reference.Counts{Chats: numberOf(o.arg(1)), SubChats: numberOf(o.arg(2))}
}

func numberOf(arg string) int {
	if n, err := strconv.Atoi(arg); err == nil {
		return n
	}
	return reference.Unlimited
}

func (d *driver) meet(ctx context.Context, o operation) error {
	name := o.arg(0)
	d.peers[name] = newDriver(d.chat.Namespace, d.name(name))
	return d.peers[name].begin(ctx, o)
}

// setQuota creates or changes a quota, and waits until it is in force. Until then what counted before still may.
func (d *driver) setQuota(ctx context.Context, o operation) error {
	before, counts := reference.Smallest(d.quotas), countsOf(o)
	d.quotas[o.arg(0)] = counts
	after := reference.Smallest(d.quotas)
	watched.allow(d.chat.Namespace, reference.Counts{
		Chats: max(before.Chats, after.Chats), SubChats: max(before.SubChats, after.SubChats),
	})
	quota := d.bareQuota(o.arg(0))
	quota.Spec.Generating = v1beta1.GeneratingLimits{Chats: limit(counts.Chats), SubChats: limit(counts.SubChats)}
	if err := d.apply(ctx, quota); err != nil {
		return err
	}
	for !inForce(quota) {
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("waiting until ChatQuota %s is in force: %w", quota.Name, ctx.Err())
		}
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return fmt.Errorf("reading ChatQuota %s: %w", quota.Name, err)
		}
	}
	watched.allow(d.chat.Namespace, after)
	return nil
}

// apply creates the quota, or changes the one that is there.
func (d *driver) apply(ctx context.Context, quota *v1beta1.ChatQuota) error {
	err := cluster.Client.Create(ctx, quota.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		numbers, _ := json.Marshal(map[string]*int32{ // Numbers can be written.
			"chats": quota.Spec.Generating.Chats, "subChats": quota.Spec.Generating.SubChats})
		err = cluster.Client.Patch(ctx, quota,
			client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"generating":%s}}`, numbers)))
	}
	if err != nil {
		return fmt.Errorf("applying ChatQuota %s: %w", quota.Name, err)
	}
	return nil
}

func (d *driver) deleteQuota(ctx context.Context, name string) error {
	delete(d.quotas, name)
	watched.allow(d.chat.Namespace, reference.Smallest(d.quotas))
	if err := cluster.Client.Delete(ctx, d.bareQuota(name)); err != nil {
		return fmt.Errorf("deleting ChatQuota %s: %w", name, err)
	}
	return nil
}

func (d *driver) bareQuota(name string) *v1beta1.ChatQuota {
	return &v1beta1.ChatQuota{ObjectMeta: metav1.ObjectMeta{Namespace: d.chat.Namespace, Name: name}}
}

// limit is a number of a quota; nil if it sets none.
func limit(n int) *int32 {
	if n == reference.Unlimited {
		return nil
	}
	return new(int32(n))
}

// inForce reports whether the quota says that the operator goes by it.
func inForce(quota *v1beta1.ChatQuota) bool {
	return quota.Status.ObservedGeneration == quota.Generation &&
		meta.IsStatusConditionTrue(quota.Status.Conditions, v1beta1.ConditionReady)
}

// allowed is how many chats of a namespace may generate at once, and when more did.
type allowed struct {
	most     reference.Counts
	exceeded string
}

// allow says how many chats of the namespace may begin a step beside each other from now on.
func (s *store) allow(namespace string, most reference.Counts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.allowed[namespace] == nil {
		s.allowed[namespace] = &allowed{}
	}
	s.allowed[namespace].most = most
}

// exceeded says which chat has begun a step while as many others as may were at theirs; empty: none.
func (s *store) exceeded(namespace string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.allowed[namespace]; a != nil {
		return a.exceeded
	}
	return ""
}

// count holds an attempt that begins to what is allowed. One that was under way when a quota was lowered goes on.
// The caller holds mu.
func (s *store) count(before, chat *v1beta1.Chat) {
	a := s.allowed[chat.Namespace]
	if a == nil || chat.Status.Generation == nil ||
		before != nil && before.UID == chat.UID && before.Status.Generation != nil && fenceOf(before) == fenceOf(chat) {
		return
	}
	n, sub := 1, chat.Spec.ParentRef != nil
	for key, other := range s.chats {
		if key.Namespace == chat.Namespace && key.Name != chat.Name && other.chat != nil &&
			other.chat.Status.Generation != nil && (other.chat.Spec.ParentRef != nil) == sub {
			n++
		}
	}
	if most := a.most.Of(sub); n > most {
		a.exceeded = fmt.Sprintf("chat %s began a step as one of %d, and the quotas let %d", chat.Name, n, most)
	}
}
