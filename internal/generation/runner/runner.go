// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner watches the chats that are given to its pod, has each attempt performed in a context of its own, and
// answers it by creating one ChatMessage.
//
// Invariants: one fence is attempted at most once by one life of the process; an attempt whose fence has moved on is
// cancelled at once and writes nothing; whatever ends an attempt, its connection to the provider is given back.
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

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
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

// DefaultForbidden is how long a result that the API server refuses for want of rights is offered again: one minute.
const DefaultForbidden = time.Minute

// Relay takes the parts of attempts.
type Relay interface {
	// Open begins an episode. It fails with publish.ErrExists if a former life of this process has begun it.
	Open(ctx context.Context, ep fence.Fence) (Episode, error)
	// SoFar reads the parts of an episode that a former life of this process has left behind.
	SoFar(ctx context.Context, ep fence.Fence) ([]parts.Frame, error)
}

// Episode takes the parts of one attempt.
type Episode interface {
	// Publish adds a part. It neither waits nor fails.
	Publish(role string, p parts.Part)
	// Close ends the episode.
	Close(ctx context.Context) error
}

// Options of a Runner. All are required but Network, HTTP, AwaitRelay, MCP, WorkspaceOwner, FileHosts, ModelHosts,
// Forbidden, PromptMemory, AdvisorUses, Metrics and Tracer.
type Options struct {
	// Namespace and Pod that this is.
	Namespace, Pod string
	// Client reaches the API server as this pod.
	Client *apiclient.Client
	// Relay of this pod.
	Relay Relay
	// AwaitRelay waits until the relay takes parts, for as long as that is worth it; nil: it does.
	AwaitRelay func(ctx context.Context)
	// Keys reads an API key; fs.ErrNotExist if there is none.
	Keys func(secret, key string) ([]byte, error)
	// Tools that models may call.
	Tools *tools.Registry
	// ClusterUnavailable is why the model of a chat cannot work in the cluster; it returns nil if it can, or is not to.
	// nil: no chat is to.
	ClusterUnavailable func(ctx context.Context, chat *v1alpha1.Chat) *v1alpha1.KubernetesUnavailable
	// WorkspaceContext reads what the workspace of a chat says about how to work in it; nil: nothing is read.
	WorkspaceContext func(ctx context.Context, chat *v1alpha1.Chat) (files []v1alpha1.MessageFile, ok bool)
	// MCP are the servers whose tools chats may name; nil: none.
	MCP *mcp.Servers
	// Workspace is the agent of a chat's workspace, which runs the commands of MCP servers; nil: there is none.
	Workspace func(ctx context.Context, chat *v1alpha1.Chat) (*client.Client, error)
	// WorkspaceOwner finds the chat whose workspace a chat works in; nil: there is none.
	WorkspaceOwner func(ctx context.Context, chat *v1alpha1.Chat) (*v1alpha1.Chat, error)
	// Network says how calls of models, and of the hosts of files, leave the pod.
	Network httpguard.Settings
	// HTTP makes these calls, but those of models with a proxy or a CA bundle of their own; nil: a client of Network.
	HTTP *http.Client
	// Log gets what operators need to see; never content.
	Log *slog.Logger
	// Now returns the current time.
	Now func() time.Time
	// FileHosts are the hosts that files may be fetched from; empty: none. See sources.Options.
	FileHosts []string
	// ModelHosts are the hosts that models may be called at; empty: all. See httpguard.Within.
	ModelHosts []string
	// Forbidden is how long a result that is refused for want of rights is offered again; 0: DefaultForbidden.
	Forbidden time.Duration
	// PromptMemory is how many bytes of memory the large prompts of the calls under way may take together; 0:
	// step.DefaultPromptMemory.
	PromptMemory int64
	// Capacity is how many chats may be at work here at once; 0: placement.DefaultCapacity.
	Capacity int
	// AdvisorUses is how often a turn may ask the advisor at most, whatever chats and their classes say: 0 switches it
	// off; nil: there is no such bound.
	AdvisorUses *int32
	// NoRecordings keeps model calls from being recorded, whatever chats and model configurations say.
	NoRecordings bool
	// Metrics and Tracer say how attempts go; nil: nobody is told.
	Metrics *telemetry.Generator
	Tracer  *tracing.Tracer
}

// Runner performs the attempts that are given to its pod.
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
	done     fences
	draining bool
	// pulse is when the watch of chats was heard of, endings what was told to end.
	pulse   pulse
	endings endings
	running sync.WaitGroup
}

// New returns a runner.
func New(o Options) *Runner {
	o = o.withDefaults()
	r := &Runner{options: o, histories: chain.NewLoader(o.Client), attempts: map[string]*attempt{}}
	configs := o.Client.ModelConfigs(o.Namespace).ListerWatcher("")
	r.configs = cache.NewSharedIndexInformer(configs, &v1alpha1.ChatModelConfig{}, 0, nil)
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
			Client: o.Client, HTTP: o.HTTP, Hosts: o.FileHosts, Forbidden: o.Forbidden, Now: o.Now,
		}),
		Message: r.message,
		Expect:  func(ctx context.Context) func() { return r.endings.expect(ctx, stuckAfter) },
	})
	r.captions = captions.New(captions.Options{
		Pod: o.Pod, Models: answering, Observer: r.observer, Now: o.Now, Create: r.createSummary,
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
func (r *Runner) message(ctx context.Context, name string) *v1alpha1.ChatMessage {
	message, err := retry.Do(ctx, retry.APIServer, func(ctx context.Context) (*v1alpha1.ChatMessage, error) {
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

// Run performs attempts until drain is done; then it takes no new ones and waits for those under way, until ctx is
// done.
func (r *Runner) Run(ctx, drain context.Context) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	chats := cache.NewSharedIndexInformer(
		r.pulse.follow(r.assignments(), r.options.Now), &v1alpha1.Chat{}, 0, nil)
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

// assignments are the chats that this pod has.
func (r *Runner) assignments() cache.ListerWatcher {
	return r.options.Client.Chats(r.options.Namespace).ListerWatcher("status.generation.pod=" + r.options.Pod)
}

// Ready reports whether attempts are taken.
func (r *Runner) Ready() bool { return r.ready.Load() }

// drain takes no more attempts and waits for those under way. The watch goes on meanwhile, so that deleting a chat
// still aborts its call.
func (r *Runner) drain() {
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	r.running.Wait()
	r.captions.Stop()
}

// assigned looks at a chat that this pod has: a new fence begins an attempt and ends an older one; the same fence
// again, such as after an edit of a label, changes nothing unless the attempt is to be interrupted.
func (r *Runner) assigned(ctx context.Context, o any) {
	chat, ok := o.(*v1alpha1.Chat)
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
	if r.done.has(of) {
		current.heed(chat, of)
		return
	}
	if current != nil {
		current.abandon(errMovedOn)
	}
	if !r.draining {
		r.begin(ctx, chat, of)
	}
}

// begin starts an attempt. The caller holds mu.
func (r *Runner) begin(ctx context.Context, chat *v1alpha1.Chat, of fence.Fence) {
	chat = new(*chat) // The attempt puts into its own what is in force.
	// What is done in lasting outlives the attempt, and ends with the process.
	lasting, observed := r.observer.Begin(ctx, chat, of)
	own, cancel := context.WithCancelCause(lasting)
	working, interrupt := context.WithCancelCause(lasting)
	a := r.newAttempt(chat, of, observed)
	a.cancel, a.interrupt = cancel, interrupt
	if chat.Status.Phase == v1alpha1.ChatInterrupting {
		interrupt(step.ErrInterrupted)
	}
	r.captions.AbandonSummary(chat.UID)
	r.attempts[of.ChatUID] = a
	r.done.add(of)
	over := r.endings.expect(own, stuckAfter)
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
