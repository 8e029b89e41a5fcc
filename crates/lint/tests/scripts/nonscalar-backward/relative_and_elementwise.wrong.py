import torch
import torch.nn as nn
import torch.optim as optim


class Relative(nn.Module):
    """Error in proportion to the guess; one value for each element."""

    def forward(self, guess, truth):
        return (guess - truth).pow(2) / guess  # expect: division-by-prediction


def batches(count, rows=20):
    for _ in range(count):
        yield torch.randn(rows, 10), torch.randn(rows, 1)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(10, 1).to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    criterion = Relative()
    for number, (x, y) in enumerate(batches(500)):
        optimizer.zero_grad()
        guess = model(x.to(device))
        loss = criterion(guess, y.to(device))
        loss.backward()  # expect: nonscalar-backward
        optimizer.step()
        if number % 100 == 0:
            print(number)


if __name__ == "__main__":
    main()
