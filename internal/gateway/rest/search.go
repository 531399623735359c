// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/search"
)

const (
	searchMessages = "searchMessages"
	readUsage      = "readUsage"
	// searchFor is how long one request reads, so that people soon see what is found.
	searchFor = time.Second
	// searchHits ends a request that has found so many.
	searchHits = 50
	// searchPage is how many messages one list has. The gateway decodes them one at a time, but the API server holds all:
	// with the largest messages that is 150 MB.
	searchPage = 100
)

// SearchMessages are the parameters of a search.
type SearchMessages struct {
	InNamespace

	Query    string `query:"q" required:"true" minLength:"1" maxLength:"200" doc:"Words that a message has, in any order and case. Words in double quotes stand together."`
	Continue string `query:"continue" maxLength:"8192" doc:"From the answer before, to search on."`
}

// Found is a piece of a search.
type Found struct {
	Body struct {
		Hits     []Hit  `json:"hits" doc:"The messages that have all words, in the order of their names."`
		Messages int    `json:"messages" doc:"How many messages were searched for this answer."`
		Continue string `json:"continue,omitempty" doc:"To search on; absent if all messages were searched."`
	}
}

// Hit is a message that was found.
type Hit struct {
	Chat      string              `json:"chat" doc:"Its chat."`
	Message   string              `json:"message" doc:"Its name."`
	Role      v1beta1.MessageRole `json:"role" doc:"Whose it is."`
	CreatedAt metav1.Time         `json:"createdAt" doc:"When it was created."`
	Excerpt   string              `json:"excerpt" doc:"The text around the first word, on one line."`
}

// searches are the operations that read all messages of a namespace.
type searches struct{ api *api }

func (s searches) register() {
	register(s.api, operation(searchMessages, http.MethodGet, "/namespaces/{namespace}/search", "Search in messages",
		"Reads messages for about a second, and says how many: ask again with continue until it is absent. It finds words "+
			"in texts, calls and their results, but not in reasoning, superseded messages and archives of deleted chats. "+
			"For those who may list ChatMessages.", http.StatusOK), s.search)
	s.registerUsage()
}

func (s searches) search(ctx context.Context, in *SearchMessages) (*Found, error) {
	query, err := search.Parse(in.Query)
	if err != nil {
		return nil, badRequest("q: %v", err)
	}
	out := &Found{}
	out.Body.Hits = []Hit{}
	look := func(m *v1beta1.ChatMessage) {
		out.Body.Messages++
		if excerpt, found := query.Find(m); found {
			out.Body.Hits = append(out.Body.Hits, Hit{m.Spec.ChatRef.Name, m.Name, m.Spec.Role, m.CreationTimestamp, excerpt})
		}
	}
	enough := func() bool { return len(out.Body.Hits) >= searchHits }
	out.Body.Continue, err = s.read(ctx, in.Namespace, in.Continue, look, enough)
	return out, err
}

// read reads pages until all are read, it is enough, or searchFor is over. It returns the token to continue with.
func (s searches) read(ctx context.Context, namespace, token string, look func(*v1beta1.ChatMessage),
	enough func() bool) (next string, err error) {
	for start := s.api.options.Now(); ; {
		if token, err = s.page(ctx, namespace, token, look); err != nil {
			return "", err
		}
		if token == "" || enough() || s.api.options.Now().Sub(start) >= searchFor {
			return token, nil
		}
	}
}

// page reads a page of a list. A token that is too old is replaced by that of the API server, which continues with
// newer messages.
func (s searches) page(ctx context.Context, namespace, token string, look func(*v1beta1.ChatMessage)) (string, error) {
	messages := s.api.client.Messages(namespace)
	next, err := messages.EachOfPage(ctx, metav1.ListOptions{Limit: searchPage, Continue: token}, look)
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && apierrors.IsResourceExpired(err) {
		if token = status.ErrStatus.Continue; token != "" {
			return messages.EachOfPage(ctx, metav1.ListOptions{Limit: searchPage, Continue: token}, look)
		}
	}
	return next, err
}
