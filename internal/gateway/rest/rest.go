// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rest lets callers read and change chats over HTTP. Operations ask the API server with the caller's own
// token, so the API server authorizes them. Nothing is kept. The gateway's own account is used only for
// Options.Agent, once the API server has said that the caller may see changes or copy files.
package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/workspace/client"
)

const (
	// maxBody is the most bytes of a request's body: one ChatMessage, with the escapes of JSON.
	maxBody = 3 << 20
	// bodyTimeout bounds how long a body may take.
	bodyTimeout = 20 * time.Second
	// DefaultRequests is how many operations run at the same time, for 512 MiB of memory.
	DefaultRequests = 32
	// maxUploads is how many uploads and redactions run at the same time. Each takes 10 to 16 MiB of memory.
	maxUploads = 8
	// maxReviews is how many requests for changes run at the same time. Each takes some 20 MiB of memory.
	maxReviews = 4
	// maxSearches is how many searches run at the same time. Each keeps the API server busy.
	maxSearches = 4
)

// Options of the operations. Client and Permit are required.
type Options struct {
	// Client asks the API server with the token of the caller: see NewClient.
	Client *apiclient.Client
	// Permit authenticates the caller with this token.
	Permit func(ctx context.Context, token string) (caller string, refused *refusal.Error)
	// Namespaces that the gateway serves; none: all.
	Namespaces []string
	// Requests is how many operations run at the same time, and how many downloads in addition. A caller has at most a
	// quarter. Default DefaultRequests.
	Requests int
	// Archive has the chats that were archived before their deletion; nil: there is none.
	Archive *archive.Store
	// Files are required with Archive.
	Files Files
	// Agent returns a client of the agent in the pod of a chat's workspace.
	Agent func(ctx context.Context, chat *v1beta1.Chat, pod *v1beta1.WorkspacePod) (*client.Client, error)
	// Refused is called with every refusal.
	Refused func(ctx context.Context, refused *refusal.Error)
	// Log records redactions of archives.
	Log *slog.Logger
	// Now returns the current time.
	Now func() time.Time
}

// api serves the operations.
type api struct {
	client  *apiclient.Client
	options Options
	// requests, downloads and uploads are apart: those of slow clients do not block the others.
	requests, downloads, uploads, reviews, searches *limit.PerCaller

	huma huma.API
}

// New serves the operations, and their description in OpenAPI, below /v1beta1/.
func New(o Options) (http.Handler, *huma.OpenAPI) {
	if o.Requests <= 0 {
		o.Requests = DefaultRequests
	}
	useRefusals()
	mux := http.NewServeMux()
	a := &api{client: o.Client, options: o, huma: humago.New(mux, configuration()),
		requests: perCaller(o.Requests), downloads: perCaller(o.Requests), uploads: perCaller(maxUploads),
		reviews:  limit.NewPerCaller(maxReviews, maxReviews/2),
		searches: limit.NewPerCaller(maxSearches, maxSearches/2)}
	a.huma.UseMiddleware(a.admit)
	a.chats()
	a.messages()
	a.steering()
	queue{a}.register()
	searches{a}.register()
	workspaces{a}.register()
	workspaceFiles{workspaces{a}}.register()
	configurations{a}.register()
	archives{a, o.Archive}.register()
	files{o.Files, a, o.Archive}.register()
	describeStreams(a.huma.OpenAPI())
	openAnswers(a.huma.OpenAPI())
	return refusal.Fallback(mux, a.answerRefused), a.huma.OpenAPI()
}

// perCaller allows so many operations, of which a caller has at most a quarter.
func perCaller(total int) *limit.PerCaller {
	return limit.NewPerCaller(int64(total), int64(max(1, total/4)))
}

// configuration serves only JSON, and no page that loads scripts of other hosts.
func configuration() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Parley gateway", Version: "v1beta1",
				Description: "Reads, follows and changes chats with the token of the caller.",
				License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"}},
			Components: &huma.Components{
				Schemas:         huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer"}},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		OpenAPIPath: "/v1beta1/openapi",
		Formats: map[string]huma.Format{
			"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat,
		},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
	}
}

// schemaName names the schema of a type. That of a resource has its version, since events and requests have types of
// the same names.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.PkgPath() == reflect.TypeFor[v1beta1.Chat]().PkgPath() {
		return v1beta1.GroupVersion.Version + "." + name
	}
	return name
}

// admit authenticates a caller, whose token the operation uses.
func (a *api) admit(ctx huma.Context, next func(huma.Context)) {
	token := refusal.BearerToken(ctx.Header("Authorization"))
	permit := a.options.Permit
	if ctx.Operation().OperationID == getFile && a.options.Archive != nil {
		permit = func(of context.Context, token string) (string, *refusal.Error) {
			return a.options.Files.Reader(of, token, ctx.Param("namespace"))
		}
	}
	caller, no := permit(ctx.Context(), token)
	if no != nil {
		a.refuse(ctx, no)
		return
	}
	limiter, what := a.limiter(ctx.Operation().OperationID)
	lease := limiter.Lease(caller)
	no = refusal.Limited(lease.Grow(1), caller, what+" under way", refusal.TooManyRequests, time.Second)
	if no != nil {
		a.refuse(ctx, no)
		return
	}
	defer lease.Release()
	ctx.SetHeader("Cache-Control", "no-store")
	next(huma.WithContext(ctx, withCaller(WithToken(ctx.Context(), token), caller)))
}

// limiter is that of an operation, with the name of what it limits.
func (a *api) limiter(operation string) (of *limit.PerCaller, what string) {
	switch operation {
	case putFile, putWorkspaceFile, redactArchive:
		return a.uploads, "uploads and redactions"
	case getFile, getArchive, getArchivedFile, getWorkspaceFiles:
		return a.downloads, "downloads"
	case getChanges, getPatch:
		return a.reviews, "requests for changes"
	case searchMessages, readUsage:
		return a.searches, "searches"
	}
	return a.requests, "requests"
}

// refuse answers a request that reaches no operation.
func (a *api) refuse(ctx huma.Context, no *refusal.Error) {
	r, w := humago.Unwrap(ctx)
	a.answerRefused(w, r, no)
}

func (a *api) answerRefused(w http.ResponseWriter, r *http.Request, no *refusal.Error) {
	a.options.Refused(r.Context(), no)
	if r.ContentLength != 0 { // The body is not read, and the answer would wait for it.
		w.Header().Set("Connection", "close")
	}
	no.Write(w)
}

// operation describes an operation.
func operation(id, method, path, summary, description string, status int) huma.Operation {
	return huma.Operation{
		OperationID: id, Method: method, Path: "/v1beta1" + path, Summary: summary, Description: description,
		DefaultStatus: status, MaxBodyBytes: maxBody, BodyReadTimeout: bodyTimeout,
	}
}

// register serves an operation. Refusals of the gateway are counted; the API server counts its own.
func register[I, O any](a *api, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := handle(ctx, in)
		if err == nil {
			return out, nil
		}
		no, ok := errors.AsType[refused](err)
		if !ok {
			no = refused{from(ctx, err)}
			if no.why.Cause == nil { // The API server's own answer.
				return nil, withRole(no.why, op)
			}
		}
		a.options.Refused(ctx, no.why)
		return nil, no
	})
}
