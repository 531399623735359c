// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/pods/podstate"
)

// Pool assigns generation pods to attempts, and creates a pod when none has room.
type Pool struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Live reads past the cache, where a decision needs the newest state.
	Live client.Reader
	// Ledger of which chat has which pod.
	Ledger *placement.Ledger
	// Settings of generation pods, without the namespace and its keys.
	Settings podspec.Settings
	// Prepare creates the objects that the pods of a namespace need. It is called before a pod is created.
	Prepare func(ctx context.Context, namespace string) error
	// Start is how long a pod may take until it is ready for the first time.
	Start time.Duration
	// Now returns the current time.
	Now func() time.Time

	// flights creates one pod at a time in a namespace: chats that come together share it, and its refusal.
	flights singleflight.Group
	// refusals are the newest *placement.RefusedError of each namespace.
	refusals sync.Map
	// filled is called with a namespace in which a chat has taken the last room of a pod; nil: there is no receiver.
	filled atomic.Pointer[func(namespace string)]
}

// Assign books the chat on a pod that has room, or else on a new one, and returns its name. Once it gives a ready pod
// more chats than its capacity, it creates one for the chats that come next. The error is a *placement.RefusedError if
// the API server refuses the pod of this chat.
func (p *Pool) Assign(ctx context.Context, chat types.NamespacedName, configs []v1beta1.ChatModelConfig,
	want placement.Want) (string, error) {
	settings, err := p.settingsIn(ctx, chat.Namespace, configs)
	if err != nil {
		return "", err
	}
	want.Template, want.Capacity = settings.Hash(), p.Settings.Capacity
	for {
		choice, err := p.choose(ctx, chat, want)
		if choice.Grow {
			p.grow(ctx, settings, want)
			return choice.Pod, nil
		}
		if choice.Pod != "" || err != nil {
			return choice.Pod, err
		}
		mine := ""
		_, err, _ = p.flights.Do(chat.Namespace, func() (any, error) {
			choice, err := p.choose(ctx, chat, want) // Another one may have come since.
			mine = choice.Pod
			if mine == "" && err == nil {
				mine, err = p.create(ctx, settings, chat.String())
			}
			return nil, err
		})
		if err != nil || mine != "" {
			return mine, err
		}
	}
}

// grow creates a pod that has room, unless one is starting by now, or was just rejected. No chat waits for it, so its
// failure holds none, and the next chat tries again.
func (p *Pool) grow(ctx context.Context, settings podspec.Settings, want placement.Want) {
	_, err, _ := p.flights.Do(settings.Namespace, func() (any, error) {
		pods, err := p.pods(ctx, settings.Namespace, want.Template)
		if err != nil || p.Ledger.Room(settings.Namespace, pods, want) > 0 || p.replacesIn(pods) > 0 {
			return nil, err
		}
		_, err = p.create(ctx, settings, "")
		return nil, err
	})
	if err != nil { // Each chat over the capacity comes here, and the one without room reports a refusal.
		log.FromContext(ctx).V(1).Info("Cannot add a generation pod", "reason", err.Error())
	}
}

// choose books the chat on a pod that is there.
func (p *Pool) choose(ctx context.Context, chat types.NamespacedName, want placement.Want) (placement.Choice, error) {
	pods, err := p.pods(ctx, chat.Namespace, want.Template)
	if err != nil {
		return placement.Choice{}, err
	}
	choice := p.Ledger.Choose(chat.Namespace, pods, want, chat.String())
	if filled := p.filled.Load(); choice.Pod != "" && filled != nil && p.Ledger.Load(choice.Pod) >= p.Settings.Capacity {
		(*filled)(chat.Namespace)
	}
	return choice, nil
}

// pods are the generation pods of the namespace, with its current template.
func (p *Pool) pods(ctx context.Context, namespace, template string) ([]placement.Pod, error) {
	var list corev1.PodList
	err := p.Client.List(ctx, &list, client.InNamespace(namespace),
		client.MatchingLabels{podspec.LabelComponent: podspec.ComponentGeneration})
	if err != nil {
		return nil, fmt.Errorf("listing generation pods: %w", err)
	}
	pods, now := make([]placement.Pod, 0, len(list.Items)), p.Now()
	for i := range list.Items {
		pods = append(pods, podstate.Placement(&list.Items[i], now, podstate.Terms{Start: p.Start, Template: template}))
	}
	return pods, nil
}

// namePrefix begins the names of generation pods.
const namePrefix = "parley-generation-"

// create creates a pod, and the objects that pods need in their namespace, and books the chat on it; empty: none. The
// specification of a pod cannot change, so pods are created and not applied. Pods of other settings are removed.
func (p *Pool) create(ctx context.Context, settings podspec.Settings, chat string) (string, error) {
	namespace, now := settings.Namespace, p.Now()
	if refused, ok := p.refusals.Load(namespace); ok && now.Before(refused.(*placement.RefusedError).Until) {
		return "", refused.(*placement.RefusedError)
	}
	pod := podspec.Generation(settings, namePrefix+rand.String(6))
	err := p.Prepare(ctx, namespace)
	if err == nil {
		err = p.Client.Create(ctx, pod)
	}
	// A refusal that names the pod, as those of Kyverno do, would be another one for each try and each waiting chat.
	if words := strings.ReplaceAll(denial.Of(err, pod.Name), pod.Name, namePrefix+"*"); words != "" {
		refused := &placement.RefusedError{Words: words, Until: now.Add(denial.Lasts)}
		p.refusals.Store(namespace, refused)
		return "", refused
	}
	if err != nil {
		return "", fmt.Errorf("creating a generation pod in namespace %s: %w", namespace, err)
	}
	p.refusals.Delete(namespace)
	p.Ledger.Created(namespace, placement.Pod{
		Name: pod.Name, Template: settings.Hash(), Created: now, Usable: true,
	}, chat)
	return pod.Name, nil
}

// Look reports whether a pod can still work.
func (p *Pool) Look(ctx context.Context, key types.NamespacedName, configs []v1beta1.ChatModelConfig) (podstate.State,
	error) {
	now := p.Now()
	pod, err := p.read(ctx, key, now)
	switch {
	case err != nil:
		return podstate.State{}, err
	case pod != nil:
		settings, err := p.settingsIn(ctx, key.Namespace, configs)
		return podstate.Of(pod, now, podstate.Terms{Start: p.Start, Template: settings.Hash()}), err
	case p.Ledger.JustCreated(key.Namespace, key.Name, now):
		// The cache may not show it yet; its event enqueues the chat.
		return podstate.State{Starting: "just created", LostIn: placement.MaxUnseen}, nil
	}
	return podstate.State{Lost: true, Gone: true}, nil
}

// read reads a generation pod; nil if there is none. A pod that is missing in the cache may exist: another manager may
// have just created it, and the caches of chats and pods are not in step.
func (p *Pool) read(ctx context.Context, key types.NamespacedName, now time.Time) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := p.Client.Get(ctx, key, &pod)
	if apierrors.IsNotFound(err) && !p.Ledger.JustCreated(key.Namespace, key.Name, now) {
		err = p.Live.Get(ctx, key, &pod)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", key.Name, err)
	}
	return &pod, nil
}

// Book records which pod the chat has; empty: none.
func (p *Pool) Book(chat types.NamespacedName, pod string) { p.Ledger.Book(chat.String(), pod) }

// Forget drops a pod that is gone.
func (p *Pool) Forget(pod types.NamespacedName) { p.Ledger.Forget(pod.Namespace, pod.Name) }

// readSettings is settingsIn with the ChatModelConfigs of the cache.
func (p *Pool) readSettings(ctx context.Context, namespace string) (podspec.Settings, error) {
	var configs v1beta1.ChatModelConfigList
	if err := p.Client.List(ctx, &configs, client.InNamespace(namespace)); err != nil {
		return podspec.Settings{}, fmt.Errorf("listing ChatModelConfigs: %w", err)
	}
	return p.settingsIn(ctx, namespace, configs.Items)
}

// settingsIn are the settings of the namespace's pods, with the keys of Secrets that its ChatModelConfigs name, and its
// chats and their classes for MCP servers.
func (p *Pool) settingsIn(ctx context.Context, namespace string, configs []v1beta1.ChatModelConfig) (
	podspec.Settings, error) {
	settings := p.Settings
	settings.Namespace = namespace
	var chats v1beta1.ChatList
	err := p.Client.List(ctx, &chats, client.InNamespace(namespace),
		client.MatchingFields{index.ChatsWithSecrets: index.WithSecrets}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return settings, fmt.Errorf("listing the chats that name Secrets: %w", err)
	}
	var classes v1beta1.ChatClassList
	if err := p.Client.List(ctx, &classes, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return settings, fmt.Errorf("listing ChatClasses: %w", err)
	}
	settings.Keys = podspec.JoinKeys(podspec.KeysOf(configs), podspec.KeysOfServers(classes.Items, chats.Items))
	return settings, nil
}
