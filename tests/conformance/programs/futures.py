from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, process
import os


def square(number):
    return number * number


def leave(number):
    os._exit(number)


if __name__ == "__main__":
    with ThreadPoolExecutor(4) as pool:
        print(list(pool.map(square, range(5))))
    with ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, range(5))))
        try:
            pool.submit(leave, 5).result()
        except process.BrokenProcessPool as error:
            print(error)
