// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/kube/apiclient"
)

// systemNamespace is where Parley is installed.
const systemNamespace = "parley-system"

// world is the namespace in which the chats talk, with a model of its own and a person who may follow them.
type world struct {
	options
	log    *slog.Logger
	ns     string
	cfg    *rest.Config
	client client.Client
	core   kubernetes.Interface
	parley *apiclient.Client
	// token of the person.
	token string
}

func newWorld(ctx context.Context, o options, log *slog.Logger) (*world, error) {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cfg.QPS = -1
	w := &world{options: o, log: log, cfg: cfg, ns: fmt.Sprintf("soak-%d", o.seed)}
	if w.client, err = client.New(cfg, client.Options{Scheme: controllers.Scheme()}); err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	if w.core, err = kubernetes.NewForConfig(cfg); err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	if w.parley, err = apiclient.New(cfg, "parley-soak"); err != nil {
		return nil, err
	}
	return w, w.build(ctx)
}

// build creates the namespace, the model, the configuration and the person.
func (w *world) build(ctx context.Context) error {
	restricted := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	subject := rbacv1.Subject{Kind: "ServiceAccount", Name: "person", Namespace: w.ns}
	role := rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "parley-chat-user"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns, Labels: restricted}},
		&corev1.Secret{ObjectMeta: w.meta("model"), StringData: map[string]string{"key": "sk-soak-key-0123456789"}},
		&corev1.ServiceAccount{ObjectMeta: w.meta("person")},
		&rbacv1.RoleBinding{ObjectMeta: w.meta("person"), Subjects: []rbacv1.Subject{subject}, RoleRef: role},
		modelPod(w.meta("model"), w.image),
		workspaceTemplate(w.meta(templateName), w.toolbox),
	} {
		if err := w.client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
	}
	address, err := w.modelAddress(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(script(w.longest))
	if err != nil {
		return fmt.Errorf("writing the script: %w", err)
	}
	if err := w.control("PUT", "script").Body(body).Do(ctx).Error(); err != nil {
		return fmt.Errorf("scripting the model: %w", err)
	}
	if err := w.client.Create(ctx,
		&v1beta1.ChatModelConfig{ObjectMeta: w.meta("default"), Spec: v1beta1.ChatModelConfigSpec{
			Default: true, Provider: v1beta1.ProviderOpenAICompatible, Model: "scripted",
			BaseURL: "http://" + address + ":8080/v1",
			APIKey:  &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: "model", Key: "key"}},
		}}); err != nil {
		return fmt.Errorf("creating the model's configuration: %w", err)
	}
	// It outlives the soak, until the last follower has seen everything: API servers give an hour at least.
	lasts := max(time.Hour, w.duration+w.settle+30*time.Minute)
	request, err := w.core.CoreV1().ServiceAccounts(w.ns).CreateToken(ctx, "person", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lasts.Seconds()))}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("asking for the person's token: %w", err)
	}
	w.token = request.Status.Token
	return nil
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: w.ns}
}

func modelPod(meta metav1.ObjectMeta, image string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		AutomountServiceAccountToken:  new(false),
		TerminationGracePeriodSeconds: new(int64(1)),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "model", Image: image, Command: []string{"/scripted-model"},
			Args: []string{"--listen=:8080"},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}}
}

// modelAddress waits until the model answers.
func (w *world) modelAddress(ctx context.Context) (string, error) {
	address := ""
	err := until(ctx, time.Minute, func(ctx context.Context) error {
		pod, err := w.core.CoreV1().Pods(w.ns).Get(ctx, "model", metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("looking at the model: %w", err)
		}
		// The API server can reach the pod before the status that was read has its address.
		if address = pod.Status.PodIP; address == "" {
			return errors.New("the model's pod has no address yet")
		}
		return w.control("GET", "requests").Do(ctx).Error()
	})
	return address, err
}

// control reaches the model's own controls through the API server.
func (w *world) control(verb, what string) *rest.Request {
	return w.core.CoreV1().RESTClient().Verb(verb).Namespace(w.ns).Resource("pods").Name("model:8080").
		SubResource("proxy").Suffix("_control", what)
}

// remove deletes the namespace and waits until it is gone: nothing in it holds it back.
func (w *world) remove(ctx context.Context) error {
	began := time.Now()
	if err := w.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}); err != nil {
		return fmt.Errorf("deleting namespace %s: %w", w.ns, err)
	}
	err := until(ctx, 3*time.Minute, func(ctx context.Context) error {
		_, err := w.core.CoreV1().Namespaces().Get(ctx, w.ns, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("namespace %s is still there", w.ns))
	})
	if err != nil {
		return fmt.Errorf("removing the namespace: %w", err)
	}
	w.log.Info("the namespace is removed", "took", time.Since(began).Round(time.Second))
	return nil
}

// until waits for the condition; its last error says what was missing.
func until(ctx context.Context, patience time.Duration, condition func(context.Context) error) error {
	return untilEvery(ctx, 250*time.Millisecond, patience, condition)
}

// untilEvery is until for conditions that cost something to ask.
func untilEvery(ctx context.Context, interval, patience time.Duration, condition func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, interval, patience, true, func(ctx context.Context) (bool, error) {
		asking, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		err := condition(asking)
		if err != nil && ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waited in vain for %s: %w", patience, errors.Join(last, ctx.Err()))
	}
	return nil
}
