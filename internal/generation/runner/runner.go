// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner watches the chats of its pod, performs each attempt in its own context, and answers it by creating one
// ChatMessage.
//
// Invariants: a process attempts each fence at most once. An attempt whose fence is no longer current is canceled at
// once and writes nothing. An attempt always closes its connection to the provider.
package runner

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/captions"
	"parley.dev/parley/internal/generation/chain"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/provider/identity"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/generation/step"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
)

// DefaultForbidden is how long forbidden requests to the API server are retried.
const DefaultForbidden = time.Minute

// Relay takes the parts of attempts.
type Relay interface {
	// Open begins an episode. It fails with publish.ErrExists if a former process of this pod has begun it.
	Open(ctx context.Context, ep fence.Fence) (Episode, error)
	// SoFar reads the parts of an episode that a former process of this pod has begun.
	SoFar(ctx context.Context, ep fence.Fence) ([]parts.Frame, error)
}

// Episode takes the parts of one attempt.
type Episode interface {
	step.Publisher
	Close(ctx context.Context) error
}

// Options of a Runner. All are required but AwaitRelay, ClusterUnavailable, the fields about workspaces, MCP, Network,
// HTTP, Gateway, the hosts and limits, Metrics and Tracer.
type Options struct {
	Namespace, Pod string
	// Client reaches the API server as this pod.
	Client *apiclient.Client
	Relay  Relay
	// AwaitRelay waits until the relay takes parts; nil: it does.
	AwaitRelay func(ctx context.Context)
	// Keys reads an API key; fs.ErrNotExist if there is none.
	Keys  func(secret, key string) ([]byte, error)
	Tools *tools.Registry
	// The next ones are those of step.Options.
	ClusterUnavailable func(ctx context.Context, chat *v1beta1.Chat) *v1beta1.KubernetesUnavailable
	WorkspaceContext   func(ctx context.Context, chat *v1beta1.Chat) (files []v1beta1.MessageFile, ok bool)
	MCP                *mcp.Servers
	Workspace          func(ctx context.Context, chat *v1beta1.Chat) (*client.Client, error)
	// WorkspaceOwner finds the chat in whose workspace a chat works.
	WorkspaceOwner func(ctx context.Context, chat *v1beta1.Chat) (*v1beta1.Chat, error)
	// Network configures the calls of models and of the hosts of files.
	Network httpguard.Settings
	// HTTP makes these calls, except those of models with their own proxy or CA bundle; nil: a client of Network.
	HTTP *http.Client
	// Log gets what operators need to see; never content.
	Log *slog.Logger
	Now func() time.Time
	// FileHosts are the hosts that files may be fetched from; empty: none. See sources.Options.
	FileHosts []string
	// Gateway has the stored files; nil: there are none.
	Gateway *sources.Gateway
	// ModelHosts are the hosts that models may be called at; empty: all. See httpguard.Within.
	ModelHosts []string
	// Forbidden is how long forbidden requests are retried; 0: DefaultForbidden.
	Forbidden time.Duration
	// PromptMemory is that of step.Options; 0: step.DefaultPromptMemory.
	PromptMemory int64
	// Capacity is how many chats may be at work here at once; 0: placement.DefaultCapacity.
	Capacity int
	// AdvisorUses limits the uses of the advisor in a turn, in addition to chats and classes; nil: no limit.
	AdvisorUses *int32
	// NoRecordings disables recordings of model calls.
	NoRecordings bool
	Metrics      *telemetry.Generator
	Tracer       *tracing.Tracer
}

// maxFences limits the remembered fences. A late event repeats one of the newest.
const maxFences = 4096

// Runner performs the attempts of its pod.
type Runner struct {
	options   Options
	configs   cache.SharedIndexInformer
	classes   *classes
	histories *chain.Loader
	observer  *observe.Observer
	steps     *step.Steps
	captions  *captions.Writer
	ready     atomic.Bool

	mu       sync.Mutex
	attempts map[string]*attempt // by chat UID
	begun    *lru.Cache          // of fences
	draining bool
	pulse    pulse // of the watch of chats
	endings  endings
	running  sync.WaitGroup
}

// New returns a runner.
func New(o Options) *Runner {
	o = o.withDefaults()
	r := &Runner{options: o, histories: chain.NewLoader(o.Client), attempts: map[string]*attempt{},
		begun: lru.New(maxFences), endings: endings{now: o.Now}}
	configs := o.Client.ModelConfigs(o.Namespace).ListerWatcher("")
	r.configs = cache.NewSharedIndexInformer(configs, &v1beta1.ChatModelConfig{}, 0, nil)
	r.classes = newClasses(o.Client, o.Namespace, o.AdvisorUses)
	observed := observe.Options{
		Namespace: o.Namespace, Pod: o.Pod, Chats: o.Capacity, Log: o.Log, Metrics: o.Metrics, Tracer: o.Tracer, Now: o.Now,
	}
	if !o.NoRecordings {
		observed.Recordings = o.Client.DebugSteps(o.Namespace)
	}
	r.observer = observe.New(observed)
	answering := models.New(models.Options{
		Namespace: o.Namespace, Client: o.Client, Configs: r.configs.GetStore(), Keys: o.Keys,
		HTTP: o.modelClient, Now: o.Now,
		Identity: identity.New(o.HTTP, o.Now), // Its exchanges are not recorded: they are tokens.
	})
	r.steps = step.New(step.Options{
		Namespace: o.Namespace, Models: answering, Tools: o.Tools, Now: o.Now, PromptMemory: o.PromptMemory,
		WorkspaceContext: o.WorkspaceContext, Workspace: o.Workspace, MCP: o.MCP, ClusterUnavailable: o.ClusterUnavailable,
		Sources: sources.New(sources.Options{
			Client: o.Client, HTTP: o.HTTP, Hosts: o.FileHosts, Gateway: o.Gateway, Forbidden: o.Forbidden, Now: o.Now,
		}),
		Message: r.message, Expect: r.endings.expect,
	})
	r.captions = captions.New(captions.Options{
		Pod: o.Pod, Models: answering, Observer: r.observer, Now: o.Now,
		Create: func(ctx context.Context, chat *v1beta1.Chat, name string, spec v1beta1.ChatMessageSpec) error {
			_, err := r.create(ctx, chat, name, spec)
			return err
		},
	})
	return r
}

// modelClient is the client for the calls of a model.
func (o *Options) modelClient(route httpguard.Route) *http.Client {
	client := o.HTTP
	if !route.IsZero() {
		client = o.Network.With(route).Client()
	}
	return httpguard.Within(observe.RecordExchanges(client), o.ModelHosts)
}

// message reads a message; nil if it does not exist, or ctx is done.
func (r *Runner) message(ctx context.Context, name string) *v1beta1.ChatMessage {
	message, err := retry.Do(ctx, retry.APIServer, func(ctx context.Context) (*v1beta1.ChatMessage, error) {
		return r.options.Client.Messages(r.options.Namespace).Get(ctx, name)
	}, apierrors.IsNotFound)
	if err != nil {
		return nil
	}
	return message
}

func (o Options) withDefaults() Options {
	o.Forbidden = cmp.Or(o.Forbidden, DefaultForbidden)
	o.PromptMemory = cmp.Or(o.PromptMemory, step.DefaultPromptMemory)
	o.Capacity = cmp.Or(o.Capacity, placement.DefaultCapacity)
	o.Tracer = cmp.Or(o.Tracer, tracing.Off())
	o.Network.ProxyHosts = o.ModelHosts
	if o.HTTP == nil {
		o.HTTP = o.Network.Client()
	}
	return o
}

// Run performs attempts until drain is done. Then it begins no more, and waits for the running ones until ctx is done.
func (r *Runner) Run(ctx, drain context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	source := r.options.Client.Chats(r.options.Namespace).ListerWatcher("status.generation.pod=" + r.options.Pod)
	chats := cache.NewSharedIndexInformer(r.pulse.follow(source, r.options.Now), &v1beta1.Chat{}, 0, nil)
	registration, err := chats.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { r.assigned(ctx, o) },
		UpdateFunc: func(_, o any) { r.assigned(ctx, o) },
		DeleteFunc: func(o any) { r.withdrawn(ctx, o) },
	})
	if err != nil {
		return fmt.Errorf("watching the chats of pod %s: %w", r.options.Pod, err)
	}
	// Recordings are written until the last attempt has ended.
	recording, stopRecording := context.WithCancel(context.WithoutCancel(ctx))
	defer stopRecording()
	var informers sync.WaitGroup
	informers.Go(func() { r.observer.Run(recording) })
	informers.Go(func() { r.configs.RunWithContext(watching) })
	informers.Go(func() { r.classes.informer.RunWithContext(watching) })
	if !cache.WaitFor(drain, "", r.configs.HasSyncedChecker(), r.classes.informer.HasSyncedChecker()) {
		return nil
	}
	if r.options.AwaitRelay != nil {
		r.options.AwaitRelay(drain)
	}
	if drain.Err() != nil {
		return nil
	}
	informers.Go(func() { chats.RunWithContext(watching) })
	if cache.WaitFor(drain, "", registration.HasSyncedChecker()) {
		r.ready.Store(true)
		<-drain.Done()
	}
	r.ready.Store(false)
	r.drain()
	stop()
	stopRecording()
	informers.Wait()
	return nil
}

// Ready reports whether attempts are performed.
func (r *Runner) Ready() bool { return r.ready.Load() }

// drain begins no more attempts and waits for the running ones. The watch continues, so that deleting a chat still
// cancels its call.
func (r *Runner) drain() {
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	r.running.Wait()
	r.captions.Stop()
}

// assigned handles an event of a chat of this pod. A new fence begins an attempt and ends an older one. The same fence
// changes nothing, unless the attempt is to be interrupted.
func (r *Runner) assigned(ctx context.Context, o any) {
	chat, ok := o.(*v1beta1.Chat)
	if !ok || chat.Status.Generation == nil || chat.Status.Generation.Pod != r.options.Pod {
		return
	}
	if !chat.DeletionTimestamp.IsZero() {
		r.withdrawn(ctx, chat)
		return
	}
	of := attempts.Of(chat.UID, &chat.Status)
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.attempts[of.ChatUID]
	if r.hasBegun(of) || current != nil && current.fence == of {
		current.interruptIfRequested(chat, of)
		return
	}
	if current != nil {
		current.abandon(errMovedOn)
	}
	if !r.draining {
		r.begin(ctx, chat, of)
	}
}

func (r *Runner) hasBegun(of fence.Fence) bool {
	_, ok := r.begun.Get(of)
	return ok
}

// begin starts an attempt. The caller holds mu.
func (r *Runner) begin(ctx context.Context, chat *v1beta1.Chat, of fence.Fence) {
	assigned := chat
	chat = new(*chat) // settle changes it, also for the observer and the captions.
	// lasting outlives the attempt, and ends with the process.
	lasting, observed := r.observer.Begin(ctx, chat, of)
	own, cancel := context.WithCancelCause(lasting)
	working, interrupt := context.WithCancelCause(lasting)
	a := r.newAttempt(chat, of, observed)
	a.assigned, a.cancel, a.interrupt = assigned, cancel, interrupt
	if chat.Status.Phase == v1beta1.ChatInterrupting {
		interrupt(step.ErrInterrupted)
	}
	r.captions.AbandonSummary(chat.UID)
	r.attempts[of.ChatUID] = a
	r.begun.Add(of, nil)
	over := r.endings.expect(own)
	r.running.Go(func() {
		defer over()
		defer cancel(nil)
		defer interrupt(nil)
		defer observed.Abandon()
		a.run(own, working, lasting)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.attempts[of.ChatUID] == a {
			delete(r.attempts, of.ChatUID)
		}
	})
}

// withdrawn ends the attempt of a chat that left this pod, or was deleted.
func (r *Runner) withdrawn(ctx context.Context, o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	chat, ok := o.(*v1beta1.Chat)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.attempts[string(chat.UID)]
	if current == nil {
		return
	}
	delete(r.attempts, string(chat.UID))
	if current.assigned.Status.Generation.Action != v1beta1.ActionExecuteTools {
		current.abandon(errMovedOn)
		return
	}
	r.running.Go(func() {
		// In another pod, the next attempt resumes the calls. Those of a deleted chat are interrupted. The watch does not
		// distinguish the two.
		if current.isChatGone(ctx) {
			current.abandon(step.ErrInterrupted)
		} else {
			current.abandon(errMovedOn)
		}
	})
}

const goneTimeout = 2 * time.Second

// isChatGone reports whether the chat is deleted, or is being deleted. If that is unknown, it is not: calls of a chat
// in another pod must not end.
func (a *attempt) isChatGone(ctx context.Context) bool {
	asking, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	o := &a.runner.options
	now, err := o.Client.Chats(o.Namespace).Get(asking, a.assigned.Name)
	switch {
	case apierrors.IsNotFound(err):
		return true
	case err != nil:
		a.log.DebugContext(ctx, "reading the chat failed", slog.Any("error", err))
		return false
	}
	return now.UID != a.assigned.UID || !now.DeletionTimestamp.IsZero()
}
