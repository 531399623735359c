// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/doctor"
	"parley.dev/parley/internal/text/compose"
)

// Installation reads how Parley is installed.
type Installation struct {
	Objects

	Dialer *Dialer
}

// Facts reads what doctor examines. plugin is the version of the plug-in. It fails if the API server does not answer.
func (i Installation) Facts(ctx context.Context, plugin string) (*doctor.Facts, error) {
	f := &doctor.Facts{Now: time.Now(), Namespace: i.Namespace, System: i.Dialer.Options.Namespace, Plugin: plugin,
		Denied: map[string][]authorizationv1.ResourceAttributes{}, Errors: map[string]error{}}
	if err := i.read(ctx, "/version", &f.Kubernetes); err != nil {
		return nil, fmt.Errorf("asking the API server for its version: %w", err)
	}
	i.readLists(ctx, f)
	if name := f.LeaseName(); name != "" {
		f.Errors["lease"] = i.read(ctx, "/apis/coordination.k8s.io/v1/namespaces/"+f.System+"/leases/"+name, &f.Lease)
	}
	_, f.Errors["message"] = i.Messages().DryRunCreate(ctx, compose.Message(i.Namespace, "parley-doctor",
		"parley-doctor-prompt", v1beta1.ChatMessageSpec{Content: "-"}))
	for _, who := range []string{doctor.Manager, doctor.Gateway, doctor.Caller} {
		f.Denied[who], f.Errors["rights-"+who] = i.denied(ctx, f.Rights(who), who)
	}
	f.Errors["answer"] = i.askGateway(ctx)
	return f, nil
}

func (i Installation) readLists(ctx context.Context, f *doctor.Facts) {
	const admission, parley = "/apis/admissionregistration.k8s.io/v1/", "/apis/parley.dev/v1beta1"
	for _, list := range []struct {
		name, path, selector string
		into                 any
	}{
		{"openapi", "/openapi/v3" + parley, "", &f.OpenAPI},
		{"policies", admission + "validatingadmissionpolicies", "", &f.Policies},
		{"bindings", admission + "validatingadmissionpolicybindings", "", &f.Bindings},
		{"stamps", admission + "mutatingadmissionpolicies", "", &f.Stamps},
		{"stamp-bindings", admission + "mutatingadmissionpolicybindings", "", &f.StampBindings},
		{"deployments", "/apis/apps/v1/namespaces/" + f.System + "/deployments", "", &f.Deployments},
		{"statefulsets", "/apis/apps/v1/namespaces/" + f.System + "/statefulsets", "", &f.StatefulSets},
		{"pods", "/api/v1/namespaces/" + f.System + "/pods", "app.kubernetes.io/name=parley", &f.Pods},
		{"generation-pods", "/api/v1/namespaces/" + f.Namespace + "/pods", "parley.dev/component=generation", &f.Generation},
		{"models", parley + "/namespaces/" + f.Namespace + "/chatmodelconfigs", "", &f.Models},
	} {
		f.Errors[list.name] = i.read(ctx, list.path, list.into, "labelSelector", list.selector)
	}
}

// read reads from the API server. What is not found is empty.
func (i Installation) read(ctx context.Context, path string, into any, parameters ...string) error {
	request := i.Dialer.Core.CoreV1().RESTClient().Get().AbsPath(path)
	for n := 0; n < len(parameters); n += 2 {
		request.Param(parameters[n], parameters[n+1])
	}
	result := request.Do(ctx)
	if err := result.Error(); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	raw, err := result.Raw()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("decoding %s: %w", path, err)
	}
	return nil
}

// maxReviews is how many rights are asked about at the same time.
const maxReviews = 10

// denied are those of the rights that a component or the caller lacks.
func (i Installation) denied(ctx context.Context, rights []authorizationv1.ResourceAttributes, who string) (
	denied []authorizationv1.ResourceAttributes, err error) {
	granted := make([]bool, len(rights))
	var group errgroup.Group
	group.SetLimit(maxReviews)
	for n := range rights {
		group.Go(func() (err error) {
			granted[n], err = i.isGranted(ctx, &rights[n], who)
			return err
		})
	}
	err = group.Wait()
	for n := range rights {
		if !granted[n] {
			denied = append(denied, rights[n])
		}
	}
	return denied, err
}

func (i Installation) isGranted(ctx context.Context, right *authorizationv1.ResourceAttributes, who string) (bool,
	error) {
	reviews := i.Dialer.Core.AuthorizationV1()
	if who == doctor.Caller {
		review, err := reviews.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: right}}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	}
	namespace := i.Dialer.Options.Namespace
	review, err := reviews.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: right,
			User: "system:serviceaccount:" + namespace + ":parley-" + who, Groups: []string{"system:serviceaccounts",
				"system:serviceaccounts:" + namespace, "system:authenticated"}}}, metav1.CreateOptions{})
	return err == nil && review.Status.Allowed, err
}

// answerTimeout is how long the gateway may take.
const answerTimeout = 15 * time.Second

// askGateway watches the chats of the namespace until the first event.
func (i Installation) askGateway(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	g, err := i.Dialer.DialStream(ctx)
	if errors.Is(err, ErrNoToken) {
		return doctor.NotCheckedError{Err: err}
	}
	if err != nil {
		return err
	}
	defer g.Close()
	g.Way.Reopen = func(_ context.Context, _ *client.Client, lost error) error { // Once is enough.
		stop(lost)
		return lost
	}
	for _, err := range g.Way.Namespace(i.Namespace).Watch(ctx, "") {
		if refused, ok := errors.AsType[*client.Error](err); ok && refused.Status == http.StatusForbidden {
			return doctor.NotCheckedError{Err: err}
		}
		return Explain(err)
	}
	return nil
}
