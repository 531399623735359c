// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
)

// A program asks a question in a chat of its own and prints the reply as the model says it.
func Example() {
	ctx := context.Background()
	gateway := &client.Client{URL: "http://parley-gateway.parley-system", Token: func(context.Context) (string, error) {
		token, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/token")
		return strings.TrimSpace(string(token)), err
	}}
	chats := gateway.Namespace("default")
	chat, err := chats.CreateChat(ctx, client.NewChat{Spec: v1beta1.ChatSpec{Prompt: "Why is the sky blue?"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range chats.Follow(ctx, chat.Name, client.FollowOptions{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch event.Name {
		case stream.EventMessagePart:
			part, err := stream.Decode[stream.MessagePart](event)
			if err == nil && part.Part.Type == parts.Text {
				fmt.Print(part.Part.Text)
			}
		case stream.EventStatus:
			status, err := stream.Decode[stream.Status](event)
			if err == nil && status.Result != "" {
				return
			}
		}
	}
}
