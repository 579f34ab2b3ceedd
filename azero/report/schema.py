"""What the rows of a run's metrics and events say, by key and by kind."""

METRICS = {
    "iteration": "Number of iterations finished.",
    "time": "When the row was written, in seconds since 1970.",
    "steps": "Training steps since the start.",
    "games": "Games finished since the start; in runs from records, games of the data set.",
    "positions": "Positions played, or learned from records, since the start.",
    "seconds": "Seconds of the iteration, compiling included.",
    "selfplay_seconds": "Seconds of self-play.",
    "learn_seconds": "Seconds of learning.",
    "wait_seconds": "Seconds that the learner waited for samples.",
    "positions_per_second": "Positions of self-play per second, of training in runs from records.",
    "simulations_per_second": "Simulations of self-play per second.",
    "window_games": "Games in the replay window.",
    "window_positions": "Positions in the replay window.",
    "network_age": "Mean age of the network that started the games, in iterations.",
    "game_length": "Mean length of the games that ended, in moves; null, like all shares and means "
    "of games, where none ended.",
    "first_wins": "Share of the games that the first mover won.",
    "draws": "Share of the games that were drawn.",
    "resigned": "Share of the games that ended by resignation.",
    "resign_threshold": "Value below which a player resigns; -2 means never.",
    "resign_false_positives": "Share of the games played to their end that resigning would have "
    "turned from a win or draw into a loss.",
    "openings": "Go: the most common first three moves of games from the empty board, with their "
    "shares of these games; rotations and reflections are merged.",
    "corner_sequences": "Go: the most common first five moves in a corner, with the shares of the "
    "games that have them; rotations, reflections and colours are merged.",
    "board_size": "Board size of the iteration's self-play, where it was not the run's own.",
    "loss": "Loss of the training steps: all parts, weighted, with the L2 penalty. Means over the "
    "iteration, like all losses.",
    "policy_loss": "Cross-entropy of the policy and its target, in nats.",
    "value_loss": "Squared error of the value, or cross-entropy of its outcomes, unweighted.",
    "l2": "L2 penalty on the parameters.",
    "entropy": "Entropy of the network's policy, in nats.",
    "target_entropy": "Entropy of the policy target, in nats: the least that policy_loss can be.",
    "accuracy": "Share of the samples whose most probable move is that of the target.",
    "gradient_norm": "Norm of the gradient.",
    "learning_rate": "Learning rate.",
    "ownership_loss": "Cross-entropy of the owner of each point.",
    "score_loss": "Loss of the final score's distribution.",
    "reply_loss": "Cross-entropy of the opponent's next policy.",
    "soft_policy_loss": "Cross-entropy of the softened policy.",
    "short_values_loss": "Squared error of the short-term root values.",
    "moves_left_loss": "Huber loss of the number of moves left.",
    "top1": "Held-out games: share of the moves that were the most probable one.",
    "top5": "Held-out games: share of the moves among the five most probable ones.",
    "held_out_policy_loss": "Held-out games: cross-entropy of the policy, in nats.",
    "held_out_value_error": "Held-out games: squared error of the value, divided by 4.",
    "score": "AlphaGo 2016, reinforcement: score against the opponent of the iteration.",
    "score_against_the_first": "The same, where the opponent is the first policy.",
    "opponent": "AlphaGo 2016, reinforcement: iteration of the opponent.",
    "pool": "AlphaGo 2016, reinforcement: policies in the pool of opponents.",
}
"""Keys of a row of `metrics.jsonl`."""
EVENTS = {
    "checkpoint": "The state was saved.",
    "evaluation": "The iteration's network played `opponent_iteration`'s: `wins`, `draws`, "
    "`losses`; the same by colour in `first` and `second`; whether it `passed` the gate, null "
    "without a gate.",
    "match skipped": "No match was played against `opponent_iteration`; `reason` says why.",
}
"""Kinds of a row of `events.jsonl`."""
